/** The lock on an inbox that another process holds, or that a file server refuses. */
import { expect, onTestFinished, test } from "vitest";
import { FAULT_CODES } from "../../../src/base/fault-codes.ts";
import { lockInbox } from "../../../src/inbox/members.ts";
import { makeFolder } from "../../support/program.ts";

const OTHER_PROCESS = FAULT_CODES.INBOX_HELD.advice;

test.each([
  ["cifs", ["rw", "vers=3.1.1"], /without the option nobrl/],
  ["smb3", ["rw"], /without the option nobrl/],
  ["cifs", ["rw", "nobrl"], OTHER_PROCESS],
  ["ext4", ["rw"], OTHER_PROCESS],
  ["nfs4", ["rw"], OTHER_PROCESS],
  ["unknown", undefined, OTHER_PROCESS],
])("a lock that is refused on %s mounted %j has the advice %s", async (kind, options, advice) => {
  const work = await makeFolder();
  const lock = await lockInbox(work, "alone", 0, "/state");
  onTestFinished(() => lock.release());
  const findMount = async () => {
    if (options === undefined) throw new Error("no mount");
    return { kind, options, point: "/srv" };
  };
  await expect(lockInbox(work, "alone", 0, "/state", findMount)).rejects.toMatchObject({
    code: "INBOX_HELD",
    message: expect.stringContaining(`process ${process.pid} on `),
    advice: typeof advice === "string" ? advice : expect.stringMatching(advice),
  });
});
