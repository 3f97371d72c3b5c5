"""What holds for every test and the processes it starts."""

import os

# Numbers are those of CPUs, on whatever machine: nobody sees a GPU.
os.environ["CUDA_VISIBLE_DEVICES"] = ""
