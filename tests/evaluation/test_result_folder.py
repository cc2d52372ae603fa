from __future__ import annotations

import pytest

from codea1_env.evaluation.result_folder import SAMPLES, FolderError, ResultFolder


def test_folders_that_cannot_be_used(tmp_path):
    with pytest.raises(FolderError, match=r"it has no eval.json"):
        ResultFolder(tmp_path / "none", {}, resume=True)
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(FolderError, match="a new or an empty folder"):
            ResultFolder(path, {}, resume=False)
    folder = tmp_path / "begun"
    with ResultFolder(folder, {"seed": 1, "n": [1]}, resume=False):
        pass
    with pytest.raises(FolderError, match="Add --resume"):
        ResultFolder(folder, {"seed": 1, "n": [1]}, resume=False)
    with pytest.raises(FolderError, match="seed was 1, now 2"):
        ResultFolder(folder, {"seed": 2, "n": (1,)}, resume=True)
    for content in ("{", '{"version": 0}', '{"version": 1}'):
        (folder / "eval.json").write_text(content)
        with pytest.raises(FolderError, match=r"JSON file|has version 0|hold the settings"):
            ResultFolder(folder, {"seed": 1, "n": [1]}, resume=True)


def test_a_process_killed_at_its_very_beginning_leaves_the_folder_free(tmp_path):
    (tmp_path / ".lock").write_bytes(b"")
    with ResultFolder(tmp_path, {}, resume=False) as folder:
        assert (folder.path / "eval.json").exists()


def test_a_folder_at_work_is_not_joined(tmp_path):
    with ResultFolder(tmp_path, {"seed": 0}, resume=False) as first:
        first.write_lines(SAMPLES, [{"task_id": "a"}])
        with pytest.raises(FolderError, match="Expect nobody else to work on"):
            ResultFolder(tmp_path, {"seed": 0}, resume=True)
        assert first.rows(SAMPLES) == [{"task_id": "a"}]
