import numpy as np

from costmodel.lab.language import sample
from costmodel.lab.pruning import prune
from costmodel.lab.repair import compare_recipes, language_model
from costmodel.lab.training import mean_loss


def test_recipes_leave_the_parent_alone_and_are_the_same_each_time() -> None:
    parent, text, held_out = language_model(steps=10), sample(500, seed=3), sample(500, seed=1)
    before = parent.weights.memory.copy()
    found = [compare_recipes(parent, text, held_out, steps=3, layers=[0, 3]) for _ in range(2)]
    assert found[0] == found[1]
    assert np.array_equal(parent.weights.memory, before)
    assert found[0].original == mean_loss(parent, held_out)
    assert found[0].cut == mean_loss(prune(parent, layers=[0, 3]), held_out)
    assert found[0].params == prune(parent, layers=[0, 3]).params == 21_664


def test_the_original_has_nothing_to_learn_from_itself() -> None:
    parent, text, held_out = language_model(steps=10), sample(500, seed=3), sample(500, seed=1)
    found = compare_recipes(parent, text, held_out, steps=2)
    assert found.cut == found.distilled == found.original
    assert found.retrained < found.original < found.scratch
