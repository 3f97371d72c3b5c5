import pytest

from tengen.errors import UsageError
from tengen.inference import InferenceConfig


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"backend": "torhc"}, 'backend ("torhc") is not known; did you mean "torch"?'),
        ({"precision": "fp16"}, 'precision ("fp16") is not known; did you mean "'),
        ({"batch_shape": None}, "batch_shape (None) must be one of"),
        (
            {"backend": "torch", "precision": "int8"},
            "precision (int8) must be fp32 or bf16 with torch; install openvino or",
        ),
        ({"batch_rows": 0}, "batch_rows (0) must be 1 to 4096; 8 to 32 suits a CPU"),
    ],
)
def test_a_config_is_checked_where_it_is_built(fields, message):
    with pytest.raises(UsageError) as error:
        InferenceConfig(**fields)
    assert str(error.value).startswith(message)
