import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { onMachine, systemMachine } from "../../../src/base/machine.ts";
import { demandInbox, identifyWork, type KnownFolders } from "../../../src/inbox/work-folder.ts";
import { makeFolder } from "../../support/program.ts";

describe("an inbox that was moved away", () => {
  test("is missing", async () => {
    const { folders, takeAway } = await openFolders();
    await takeAway();
    await expect(demandInbox(folders, folders.inbox)).rejects.toMatchObject({ code: "FOLDER_MISSING" });
  });

  test.each([0, 1, 2, 3])(
    "and comes back after %i looks is never taken for another folder",
    async (looks) => {
      const { folders, takeAway, bringBack } = await openFolders();
      await takeAway();
      let left = looks;
      const stat = async (path: string) => {
        if (left-- === 0) await bringBack();
        return systemMachine.files.stat(path);
      };
      const files = { ...systemMachine.files, stat: stat as typeof systemMachine.files.stat };
      const machine = { ...systemMachine, files };
      const found = onMachine(machine, () => demandInbox(folders, folders.inbox)).then(
        () => "there",
        (fault: { code: string }) => fault.code,
      );
      expect(["there", "FOLDER_MISSING"]).toContain(await found);
    },
  );
});

async function openFolders() {
  const root = await makeFolder();
  const [work, state, inbox] = [join(root, "work"), join(root, "state"), join(root, "inbox")];
  const temporary = join(work, "new");
  for (const folder of [temporary, state, inbox]) await mkdir(folder, { recursive: true });
  const folders: KnownFolders = await identifyWork({ work, state, inbox }, temporary);
  return {
    folders,
    takeAway: () => rename(inbox, `${inbox}-away`),
    bringBack: () => rename(`${inbox}-away`, inbox),
  };
}
