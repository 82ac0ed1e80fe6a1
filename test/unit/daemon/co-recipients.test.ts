import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { coRecipientsAmong } from "../../../src/daemon/workspace.ts";
import { mailboxSettings } from "../../support/settings.ts";

test("a transfer that the disk does not give is not taken for one that no other mailbox has", async () => {
  const at = (url: string, name: string) => mailboxSettings({ url, clientId: "C".repeat(64) }, { name });
  const mailboxes = [
    at("https://a.example", "a"),
    at("https://a.example", "b"),
    at("https://c.example", "c"),
  ];
  const find = () => Promise.reject(new Fault("DISK_UNREADABLE"));
  const among = coRecipientsAmong(() => mailboxes, { find });
  await expect(among.openBudgets("a", "t1")).rejects.toMatchObject({ code: "DISK_UNREADABLE" });
  await expect(among.isElsewhere("a", "t1")).rejects.toMatchObject({ code: "DISK_UNREADABLE" });
});
