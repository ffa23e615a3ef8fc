"""What the papers' models say of collectives: `gradcube model`, whose commands are also

    python3 -m gradcube.model gst --topology bcube:4,2

The models are formulas on numbers, a module for each paper: bml, hips, blueconnect, mgwfbp, phub. They need Python's
standard library alone, take SI units (seconds, bytes, bits per second) and raise ValueError for numbers that they do
not have. gst_table has their algorithms by the names that plans have; figures, gst_figures, blueconnect_figures and
training_figure are the papers' figures as data, which drawing draws with Matplotlib. training simulates an iteration
whose layers' gradients are merged: merge_policies asks libgradcube which are. networks has the networks, layer by
layer, in files that `gradcube perf hub --network` reads, too.

Each `..._command` is a command of the tool. Their words are read by command_line, numbers with units by units, files
by json_file; report prints. All of a command's errors are failure's.
"""
