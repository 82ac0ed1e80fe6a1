/** The mail of a transfer with a confidential message. */
import { expect, test } from "vitest";
import type { FilePlan } from "../../../simulator/scenario.ts";
import { errorOf, simulateOne } from "./client.ts";

const files: FilePlan[] = [
  { name: "large.bin", generate: { bytes: 900_000 } },
  { name: "Größe.txt", text: "small" },
  { name: `${"ü".repeat(80)}.bin`, generate: { bytes: 100_000 } },
];

interface MailPart {
  readonly headers: string;
  readonly bytes: Buffer;
}

/** Splits a mail into headers and decoded parts. */
function readMail(text: string): { headers: string; parts: MailPart[] } {
  const [, boundary = ""] = /boundary="([^"]+)"/.exec(text) ?? [];
  const [head = "", ...rest] = text.split(`--${boundary}`);
  expect(rest.pop()).toBe("--\r\n");
  const parts = rest.map((part) => {
    const [headers = "", body = ""] = part.split("\r\n\r\n");
    return { headers, bytes: Buffer.from(body, "base64") };
  });
  return { headers: head, parts };
}

test("the EML is a mail with the message and every file, without overlong lines", async () => {
  const { transfer, get } = await simulateOne({
    files,
    fromName: "Jörg, Büro",
    cc: ["b@example.com"],
    bcc: ["hidden@example.com"],
    subject: "Größen und Maße, die niemand in eine Zeile bekommt\r\nBcc: everybody@example.com",
    message: "Guten Tag,\nviele Grüße\n",
  });
  const answer = await get("/eml");
  expect(answer.headers["content-type"]).toBe("application/octet-stream");
  expect(answer.headers["content-length"]).toBe(String(answer.bytes.length));
  expect(Math.max(...answer.text.split("\r\n").map((line) => line.length))).toBeLessThanOrEqual(100);

  const { headers, parts } = readMail(answer.text);
  expect(headers).toMatch(/^From: =\?UTF-8\?B\?\S+\?= <anna@supplier\.example>\r\n/);
  expect(headers).toContain("To: <orders@example.com>\r\nCc: <b@example.com>\r\nSubject: =?UTF-8?B?");
  expect(headers).toMatch(/\r\nDate: \w{3}, \d\d \w{3} \d{4} [\d:]{8} \+0000\r\nMessage-ID: <\S+@\S+>\r\n/);
  expect(answer.text).not.toContain("hidden@example.com");
  expect(answer.text).not.toContain("\r\nBcc:");

  const [message, large, small, long] = parts;
  expect(message?.bytes.toString()).toBe("Guten Tag,\r\nviele Grüße\r\n");
  expect(small?.bytes.toString()).toBe("small");
  expect(small?.headers).toContain("filename*=UTF-8''Gr%C3%B6%C3%9Fe.txt");
  expect(long?.headers).toContain("filename*0*=UTF-8''%C3%BC");
  expect(long?.headers).toContain("filename*1*=%C3%BC");
  const single = await get(`/files/${transfer.files[0]?.id}`);
  expect(large?.bytes.equals(single.bytes)).toBe(true);
});

test("the EML leaves out the largest files above a threshold, and says so", async () => {
  const { get } = await simulateOne({ files, message: "Hi" });
  const attachedWithin = async (threshold: string) => {
    const { text, bytes } = await get("/eml", { query: { threshold } });
    const [message, ...attachments] = readMail(text).parts;
    return { bytes: bytes.length, count: attachments.length, message: message?.bytes.toString() };
  };
  expect(await attachedWithin("2")).toMatchObject({ count: 3, message: "Hi" });
  const within = await attachedWithin("0.5");
  expect(within).toMatchObject({ count: 2, message: expect.stringMatching(/^Hi\r\n\r\n1 of the files/) });
  expect(within.bytes).toBeLessThanOrEqual(500_000);
  const none = { count: 0, message: expect.stringContaining("3 of the files") };
  expect(await attachedWithin("0")).toMatchObject(none);
});

test.each(["", "-1", "much", "1e3", "0x10"])("the EML refuses the threshold %j", async (threshold) => {
  const { get } = await simulateOne({ message: "Hi" });
  expect(errorOf(await get("/eml", { query: { threshold } }))).toBe("400/1004");
});
