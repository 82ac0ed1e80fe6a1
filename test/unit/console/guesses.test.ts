import { expect, test } from "vitest";
import { Guesses } from "../../../src/console/guesses.ts";

const wrong = () => undefined;
const right = () => "anna";

async function guessed(peer = "192.0.2.1"): Promise<Guesses> {
  const guesses = new Guesses({ now: () => 0 }, 1);
  for (let at = 0; at < 10; at++) expect(await guesses.attempt(peer, wrong)).toBeUndefined();
  return guesses;
}

test("ten wrong tokens a minute are answered at once, later ones one at a time", async () => {
  const guesses = await guessed();
  let running = 0;
  let most = 0;
  let checked = 0;
  const check = () => {
    checked++;
    running++;
    most = Math.max(most, running);
    running--;
    return undefined;
  };
  const answers = await Promise.all(Array.from({ length: 50 }, () => guesses.attempt("192.0.2.1", check)));
  expect(new Set(answers)).toEqual(new Set(["throttled"]));
  // Most are refused without a look at the token.
  expect([checked, most]).toEqual([3, 1]);
});

test("a right token of the same address waits, and is accepted", async () => {
  expect(await (await guessed()).attempt("192.0.2.1", right)).toBe("anna");
});

test.each([
  ["192.0.2.1", "192.0.2.2", false],
  ["::ffff:192.0.2.1", "192.0.2.1", true],
  ["::ffff:192.0.2.1", "::ffff:192.0.2.2", false],
  ["2001:db8::1", "2001:db8:0:0:1:2:3:4", true],
  ["2001:db8:0:1::1", "2001:db8:0:2::1", false],
  ["::1", "::2", true],
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
