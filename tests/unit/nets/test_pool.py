import torch

from tengen.nets.modules.heads import GlobalPool


def test_training_and_evaluation_pool_to_the_same_numbers():
    x = torch.rand(5, 3, 9, 7)
    area = torch.full((5, 1), 63.0)
    pool = GlobalPool()
    trained = pool.train()(x, area)
    assert torch.equal(trained, pool.eval()(x, area))
    assert trained.shape == (5, 9)
    mean = x.mean((2, 3))
    torch.testing.assert_close(trained[:, :3], mean)
    torch.testing.assert_close(trained[:, 3:6], mean * (63.0**0.5 / 10 - 1))
    assert torch.equal(trained[:, 6:], x.flatten(2).max(2).values)


def test_the_gradient_of_the_maximum_reaches_its_cell():
    x = torch.zeros(1, 1, 3, 3)
    x[0, 0, 1, 2] = 4.0
    x.requires_grad_()
    pooled = GlobalPool().train()(x, torch.full((1, 1), 9.0))
    pooled[0, 2].backward()
    expected = torch.zeros(1, 1, 3, 3)
    expected[0, 0, 1, 2] = 1.0
    assert torch.equal(x.grad, expected)
