"""What a job is made of, before bytes and seconds: parameters, FLOPs, stored weights, cache, kernels, stages."""
