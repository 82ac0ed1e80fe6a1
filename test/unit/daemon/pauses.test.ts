import { rename } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LiveSettings } from "../../../src/daemon/live-settings.ts";
import { followPauses, putPausesInForce } from "../../../src/daemon/reload.ts";
import { createPause, type Pauses, removePause } from "../../../src/ledger/pauses.ts";
import { makeFolder } from "../../support/program.ts";
import { MAILBOX, OPERATOR, settingsIn } from "../../support/settings.ts";

test("a pause does not end while the disk of the work folder is gone", async () => {
  const work = join(await makeFolder(), "work");
  await createPause(work, MAILBOX, OPERATOR, "2026-03-01T08:00:00.000Z");
  const live = new LiveSettings(settingsIn(work, [], { work }));
  await putPausesInForce(live, () => {});
  const applied: Pauses[] = [];
  await using scope = new AsyncDisposableStack();
  const look = await followPauses(
    live,
    async (pauses) => void applied.push(pauses),
    () => {},
    scope,
  );
  await rename(work, `${work}.gone`);
  await look();
  expect(applied).toEqual([]);
  await rename(`${work}.gone`, work);
  await removePause(work, MAILBOX);
  await look();
  expect(applied.at(-1)).toEqual(new Map());
});
