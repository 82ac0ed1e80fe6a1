/** The control interface of the simulator. */
import { expect, test } from "vitest";
import type { Simulator } from "../../../simulator/simulator.ts";
import { ask, jsonOf, pathOf, plan, simulate } from "./client.ts";

async function control(simulator: Simulator, call: string, body?: unknown) {
  const [method = "", path = ""] = call.split(" ");
  const answer = await ask(simulator, path, { method, body });
  return { status: answer.status, json: jsonOf(answer), headers: answer.headers };
}

test("the control interface explains every call, with a working example", async () => {
  const simulator = await simulate();
  const { text, headers } = await ask(simulator, "/control");
  expect(headers["content-type"]).toContain("text/plain");
  const bodies = [...text.matchAll(/curl http:[\w.:/]+?(\/control\/\w+) -d '([^']+)'/g)];
  expect(bodies).toHaveLength(4);
  for (const [, path, body] of bodies) {
    const { status } = await ask(simulator, path ?? "", { body });
    expect(status).toBeLessThan(300);
  }
  for (const [, method, path] of text.matchAll(/^(GET|POST|DELETE) (\/control\S*)/gm)) {
    expect((await ask(simulator, path ?? "", { method: method ?? "" })).status).not.toBe(405);
  }
});

test("the control interface adds transfers, and ends them", async () => {
  const simulator = await simulate();
  const added = await control(simulator, "POST /control/transfers", plan({ trackingId: "a b" }));
  const json = { trackingId: "a b", state: "Active", password: "right" };
  expect(added).toMatchObject({ status: 201, json });
  await control(simulator, "POST /control/transfers", plan({ trackingId: "c" }));
  const revoked = await control(simulator, "POST /control/transfers/a%20b/revoke");
  expect(revoked.json.state).toBe("Deleted_by_revocation");
  const removed = await control(simulator, "POST /control/transfers/c/remove");
  expect(removed.json.state).toBe("Deleted_by_admin");
  const body = { old: "orders@example.com", new: "proxy@deleted.invalid" };
  const replaced = await control(simulator, "POST /control/transfers/c/replace-address", body);
  expect(replaced.json.recipients[0].mailbox).toBe("proxy@deleted.invalid");
  expect((await control(simulator, "GET /control/transfers")).json).toEqual(simulator.transfers());
});

test("the control interface adds faults, counts their strikes, and removes them", async () => {
  const simulator = await simulate();
  const body = { on: "password-rules", does: { kind: "error", status: 503 } };
  const added = await control(simulator, "POST /control/faults", body);
  expect(added).toMatchObject({ status: 201, json: { id: "fault-1" } });
  await ask(simulator, "/api/password/requirements");
  expect((await control(simulator, "GET /control/faults")).json).toEqual([
    { id: "fault-1", plan: body, matched: 1, struck: 1 },
  ]);
  expect((await control(simulator, "DELETE /control/faults/fault-7")).status).toBe(404);
  expect((await control(simulator, "DELETE /control/faults/fault-1")).json).toEqual([]);
  await control(simulator, "POST /control/faults", body);
  expect((await control(simulator, "DELETE /control/faults")).json).toEqual([]);
});

test("the control interface advances the clock", async () => {
  const transfers = [plan({ expiresInSeconds: 60 })];
  const simulator = await simulate({ transfers }, { clock: { now: () => 0 } });
  const advanced = await control(simulator, "POST /control/advance", { seconds: 90 });
  expect(advanced.json).toEqual({ now: "1970-01-01T00:01:30+00:00" });
  expect(simulator.transfers()[0]?.state).toBe("Deleted_by_expiration");
});

test("the control interface shows requests and mails, but no refused password", async () => {
  const simulator = await simulate({}, { clock: { now: () => 0 } });
  await ask(simulator, pathOf(simulator.addTransfer(plan())), { password: "secret-guess" });
  await ask(simulator, "/api/users/a@example.com/verification/code/email", { method: "POST" });
  const requests = await control(simulator, "GET /control/requests");
  expect(requests.json.totals).toMatchObject({ info: 1, "verification-code": 1 });
  expect(requests.json.requests).toHaveLength(2);
  const transfers = await control(simulator, "GET /control/transfers");
  expect(transfers.json[0].refusedPasswords).toBe(1);
  expect(JSON.stringify([requests.json, transfers.json])).not.toContain("secret-guess");
  const [code] = simulator.mailedCodes("a@example.com");
  expect((await control(simulator, "GET /control/mails")).json).toEqual([
    { address: "a@example.com", code, sent: "1970-01-01T00:00:00+00:00" },
  ]);
});

test.each<[string, unknown, number, string]>([
  ["POST /control/transfers", { ...plan(), fiels: [] }, 400, "fiels: unknown key, did you mean files?"],
  ["POST /control/transfers", { ...plan(), files: [{ name: "x" }] }, 400, "files.0: needs exactly one of"],
  ["POST /control/transfers", "{", 400, "not JSON"],
  ["POST /control/transfers", undefined, 400, "must be an object"],
  ["POST /control/transfers", plan({ trackingId: "t" }), 400, "trackingId: transfer t exists already"],
  ["POST /control/faults", { does: { kind: "reset", afterbytes: 1 } }, 400, "does.afterbytes: unknown key"],
  ["POST /control/faults", { on: "everything", does: { kind: "reset" } }, 400, "on: "],
  ["POST /control/advance", { seconds: -1 }, 400, "seconds: "],
  ["POST /control/transfers/t/replace-address", { old: "x@y.z", new: "a@b.c" }, 400, "old: x@y.z is not"],
  ["POST /control/transfers/unknown/revoke", undefined, 404, "there is no transfer unknown"],
  ["GET /control/nothing", undefined, 404, "GET /control"],
  ["PUT /control/faults", undefined, 405, "only GET, POST, DELETE"],
])("the control interface refuses %s %j", async (call, body, status, message) => {
  const simulator = await simulate({ transfers: [plan({ trackingId: "t" })] });
  const answer = await control(simulator, call, body);
  expect(answer.status).toBe(status);
  expect(answer.json.error).toContain(message);
});
