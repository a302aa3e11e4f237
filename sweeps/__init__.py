"""The paper's experiments, one file each: `point`, `axes(scale)`, `figure(dataset)`, `claims(dataset)`."""
