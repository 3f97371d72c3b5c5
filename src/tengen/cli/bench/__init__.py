"""The benchmarks of ``tengen bench NAME``, one module per benchmark."""
