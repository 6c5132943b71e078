"""The first repository of a model is its maker's: recipes and servers load that one."""

from __future__ import annotations

from collections import Counter, defaultdict

from llmfeas.catalog.store import catalog

OTHERS = {"bert-base"}
"""Of a family that more embedding models than makers are named after."""


def test_a_model_s_first_repository_is_its_maker_s() -> None:
    owners = {
        model.id: (model.family, [alias.partition("/")[0] for alias in model.aliases if alias.count("/") == 1])
        for model in catalog().models.values()
    }
    makers: dict[str | None, Counter[str]] = defaultdict(Counter)
    for family, found in owners.values():
        makers[family].update(found[:1])
    usual = {family: counted.most_common(1)[0][0] for family, counted in makers.items() if counted}
    wrong = [
        name
        for name, (family, found) in owners.items()
        if found and found[0] != usual[family] and usual[family] in found
    ]
    assert set(wrong) <= OTHERS


def test_a_model_takes_no_facts_of_training_from_another_maker_s_family() -> None:
    """Nor one that makes vectors from the one that it is made of; the shapes are alike, the tokens were others."""
    models, families = catalog().models, catalog().raw("models")["families"]
    for key, model in models.items():
        family = families.get(model.family)
        if family is None or models.raw(key).get("like"):
            continue
        own = model.organisation == family.get("organisation") and not model.architecture.embeds
        for field in ("training_tokens", "training_tokens_source", "notes"):
            said, shared = getattr(model, field), family.get(field)
            assert own or not shared or str(shared).startswith("not published") or said != shared, (key, field)
