"""What holds for every test and the processes it starts."""

import os
import signal

# Numbers are those of CPUs, on whatever machine: nobody sees a GPU.
os.environ["CUDA_VISIBLE_DEVICES"] = ""

# A shell that starts the tests in the background has them, and all that they start,
# ignore SIGINT.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
