import pytest

from tengen.inference.programs import bucket_for, bucket_sizes


@pytest.mark.parametrize(
    ("max_rows", "sizes"),
    [
        (1, (1,)),
        (8, (8,)),
        (20, (10, 20)),
        (64, (8, 16, 32, 48, 64)),
        (1000, (15, 31, 62, 125, 250, 500, 750, 1000)),
    ],
)
def test_sizes(max_rows, sizes):
    assert bucket_sizes(max_rows) == sizes


@pytest.mark.parametrize("max_rows", [1, 7, 100, 4096])
def test_every_batch_goes_to_the_smallest_size_that_holds_it(max_rows):
    sizes = bucket_sizes(max_rows)
    for num_rows in range(1, max_rows + 1):
        bucket = bucket_for(num_rows, sizes)
        assert bucket == min(size for size in sizes if size >= num_rows)
