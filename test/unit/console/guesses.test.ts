import { expect, test } from "vitest";
import { Guesses } from "../../../src/console/sessions.ts";

const wrong = () => undefined;
const right = () => "anna";

async function guessed(peer = "192.0.2.1"): Promise<Guesses> {
  const guesses = new Guesses({ now: () => 0 }, 1);
  for (let at = 0; at < 10; at++) expect(await guesses.attempt(peer, wrong)).toBeUndefined();
  return guesses;
}

test("ten wrong tokens a minute are refused at once, later ones after a pause", async () => {
  const guesses = await guessed();
  const answers = await Promise.all(Array.from({ length: 50 }, () => guesses.attempt("192.0.2.1", wrong)));
  expect(new Set(answers)).toEqual(new Set(["throttled"]));
});

test("a right token is accepted at once, however many wrong ones of the same address wait", async () => {
  const guesses = await guessed();
  let refused = 0;
  const refusals = Array.from({ length: 50 }, () =>
    guesses.attempt("192.0.2.1", wrong).finally(() => refused++),
  );
  expect([await guesses.attempt("192.0.2.1", right), refused]).toEqual(["anna", 0]);
  await Promise.all(refusals);
});

test.each([
  ["192.0.2.1", "192.0.2.2", false],
  ["::ffff:192.0.2.1", "192.0.2.1", true],
  ["::ffff:192.0.2.1", "::ffff:192.0.2.2", false],
  ["2001:db8::1", "2001:db8:0:0:1:2:3:4", true],
  ["2001:db8:0:1::1", "2001:db8:0:2::1", false],
  ["::1", "::2", true],
  ["127.0.0.1", "127.1.2.3", true],
])("%s and %s count as one client: %s", async (one, other, isSame) => {
  const guesses = await guessed(one);
  expect(await guesses.attempt(other, wrong)).toBe(isSame ? "throttled" : undefined);
});

test("after a minute a client starts afresh; many clients do not fill the memory", async () => {
  let nowMs = 0;
  const guesses = new Guesses({ now: () => nowMs }, 1);
  for (let at = 0; at < 10; at++) await guesses.attempt("a", wrong);
  nowMs = 60_001;
  expect(await guesses.attempt("a", wrong)).toBeUndefined();
  for (let at = 0; at < 5_000; at++) expect(await guesses.attempt(`peer${at}`, wrong)).toBeUndefined();
});
