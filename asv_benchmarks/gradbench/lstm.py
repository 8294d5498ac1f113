"""The loss of a recurrent network (LSTM) whose weight matrices are diagonal."""

import numpy as np
from gradbench import wrap

import varmat as vm


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def step(state, characters, main, extra):
    """Predict a character from the one before.

    Parameters
    ----------
    state : sequence of pairs of ndarray
        For each layer, what is hidden and the cells.
    characters : pair of ndarray
        The bits of a character and of the next.
    main : ndarray
        (layers, 2, 4, bits): weights and biases of the gates.
    extra : ndarray
        (3, bits): the weights of input and output, and the bias of the output.

    Returns
    -------
    state : list of pairs of ndarray
    float
        The log probability of the next character.
    """
    x, wanted = characters
    y = x * extra[0]
    after = []
    for (hidden, cell), (weight, bias) in zip(state, main, strict=True):
        forget = sigmoid(y * weight[0] + bias[0])
        ingate = sigmoid(hidden * weight[1] + bias[1])
        outgate = sigmoid(y * weight[2] + bias[2])
        change = np.tanh(hidden * weight[3] + bias[3])
        cell = cell * forget + ingate * change
        y = outgate * np.tanh(cell)
        after.append((y, cell))
    y = y * extra[1] + extra[2]
    return after, np.sum(wanted * (y - np.log(2.0 + np.sum(np.exp(y)))))


def loss(parameters, state, sequence):
    _, terms = vm.scan(step, [*map(tuple, state)], (sequence[:-1], sequence[1:]), *parameters)
    return -np.sum(terms) / sequence[1:].size


loss_gradient = vm.recorded(loss)


def prepare(input):
    main, extra, state, sequence = (
        np.array(input[name]) for name in ("main_params", "extra_params", "state", "sequence")
    )
    layers, bits = len(main) // 2, extra.shape[1]
    parameters = main.reshape(layers, 2, 4, bits), extra
    return parameters, state.reshape(layers, 2, bits), sequence


@wrap.multiple_runs(pre=prepare, post=float)
def objective(input):
    return loss(*input)


@wrap.multiple_runs(pre=prepare, post=lambda g: np.concatenate([*map(np.ravel, g)]).tolist())
def jacobian(input):
    return loss_gradient(*input)[1]
