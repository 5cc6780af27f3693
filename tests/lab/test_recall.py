import numpy as np
import pytest

from costmodel.lab.recall import added, associations, attended, best_matrix, corrected, share_recalled

WIDTH = 32


@pytest.mark.parametrize("memory", [added, corrected, best_matrix, attended])
def test_one_pair_is_recalled_by_any_memory(memory: object) -> None:
    assert share_recalled(memory, 1, WIDTH) == 1


def test_a_matrix_holds_as_many_pairs_as_it_has_rows() -> None:
    keys, values = associations(WIDTH, WIDTH, seed=0)
    np.testing.assert_allclose(best_matrix(keys, values), values, atol=1e-8)
    assert share_recalled(best_matrix, 2 * WIDTH, WIDTH) < 0.05
    assert share_recalled(attended, 2 * WIDTH, WIDTH) > 0.99


def test_correcting_beats_adding() -> None:
    assert share_recalled(corrected, WIDTH, WIDTH) > share_recalled(added, WIDTH, WIDTH)


def test_orthogonal_keys_do_not_disturb_each_other() -> None:
    values = associations(WIDTH, WIDTH, seed=1)[1]
    for memory in (added, corrected, best_matrix):
        np.testing.assert_allclose(memory(np.eye(WIDTH), values), values, atol=1e-12)


def test_the_same_seed_draws_the_same_pairs() -> None:
    for first, second in zip(associations(5, WIDTH, 3), associations(5, WIDTH, 3), strict=True):
        np.testing.assert_array_equal(first, second)
