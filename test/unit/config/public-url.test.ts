/** The address of the console in mails and webhooks. */
import { expect, test } from "vitest";
import { linkableAddress } from "../../../src/config/http.ts";
import { config, load } from "./stage.ts";

test.each([
  ["http://127.0.0.1:8460/", undefined],
  ["http://[::1]:8460/", undefined],
  ["http://0.0.0.0:8460/", undefined],
  ["http://[::]:8460/", undefined],
  ["unix:/run/inlet/console.sock", undefined],
  [undefined, undefined],
  ["http://192.0.2.7:8460/", "http://192.0.2.7:8460"],
])("%s is linked to as %s, unless there is a public address", (opened, link) => {
  expect(linkableAddress({}, opened)).toBe(link);
  expect(linkableAddress(undefined, opened)).toBe(link);
  expect(linkableAddress({ publicUrl: "https://inlet.example.com" }, opened)).toBe(
    "https://inlet.example.com",
  );
});

test("the public address allows its host name", async () => {
  const { http } = await load(config("http: { publicUrl: https://Inlet.example.com/in }"));
  expect(http).toMatchObject({ publicUrl: "https://inlet.example.com/in", hosts: ["inlet.example.com"] });
});
