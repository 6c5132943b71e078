"""What PyTorch's autograd keeps alive: storages, graph, recorder, small operators. It knows no architecture.

Lifetimes are the physics here. A storage counts from its making to the death of the last reference to it, and CPython's
reference counts are taken for those of PyTorch's own code, name by name. So a name is a fact about memory:

- what a Python frame refers to is alive until the frame ends, the name is bound anew or `del` ends it, and a caller's
  arguments are alive during the call, as they are during a module's call. A name that begins with an underscore and is
  never read is there to keep what it names alive as long as public code does; no name is shorter or longer by chance.
- what backward needs is alive because its node keeps it, and goes when the recorder clears the node.
- the recorder adds two gradients in place where nobody else holds the first, as its reference count tells.

`storage.py` counts, `recorder.py` decides when nodes and gradients let go; programs hold names and nothing else.
"""
