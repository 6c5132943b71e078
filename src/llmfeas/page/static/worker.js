// Python in a worker of its own: a message {id, name, values} is a call of llmfeas.page.answers, its answer {id, text}.
async function runtime() {
  const config = await (await fetch("page.json")).json();
  const base = new URL(config.pyodide, self.location.href).href;
  if (!base.startsWith(self.location.origin + "/"))
    await Promise.all(Object.entries(config.integrity).map(([name, integrity]) => fetch(base + name, { integrity })));
  const { loadPyodide } = await import(base + "pyodide.mjs");
  const [python, archive] = await Promise.all([
    loadPyodide({ indexURL: base }),
    fetch(config.archive).then((answer) => {
      if (!answer.ok) throw new Error(`${config.archive}: ${answer.status}`);
      return answer.arrayBuffer();
    }),
  ]);
  python.unpackArchive(new Uint8Array(archive), "zip", { extractDir: "/llmfeas" });
  python.runPython("import sys; sys.path.insert(0, '/llmfeas')");
  return [python, python.pyimport("llmfeas.page.answers").called];
}

let dropped = 0;
const ready = runtime();
ready.then(
  () => self.postMessage({ ready: true }),
  (error) => self.postMessage({ failed: String(error.message ?? error).slice(0, 300) }),
);

self.onmessage = async ({ data: { id, name, values, file } }) => {
  const [python, called] = await ready;
  if (file) {
    // The file is read where a reader looks into it: its header, never its weights.
    const place = `/dropped/${++dropped}`;
    python.FS.mkdirTree(place);
    python.FS.mount(python.FS.filesystems.WORKERFS, { files: [file] }, place);
    self.postMessage({ id, text: JSON.stringify({ result: `${place}/${file.name}` }) });
  } else self.postMessage({ id, text: called(name, JSON.stringify(values)) });
};
