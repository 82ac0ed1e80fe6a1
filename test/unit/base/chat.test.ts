/** Messages for chat systems: a sender can neither link, mention, nor leave the place of quoted text. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CHAT_FORMATS, type ChatMessage, formatChat } from "../../../src/base/chat.ts";

const EVIL =
  "<!channel> <@U1> @all @channel <https://evil.example|click> [click](https://evil.example) *b* _i_ &amp; ```";

const MESSAGE: ChatMessage = {
  title: "1 transfer needs a password",
  text: `  t1 from ${EVIL}\n\n  second line`,
  footer: "the footer",
  links: [{ label: "t1", url: "https://inlet.example.com/transfer?trackingId=t1" }],
};

test("Slack shows a sender's text in rich text, which has no markup, and links as elements of their own", () => {
  expect(JSON.parse(formatChat("slack", MESSAGE))).toEqual({
    text: "1 transfer needs a password",
    blocks: [
      {
        type: "rich_text",
        elements: [
          {
            type: "rich_text_section",
            elements: [{ type: "text", text: MESSAGE.title, style: { bold: true } }],
          },
          {
            type: "rich_text_preformatted",
            elements: [{ type: "text", text: `${MESSAGE.text}\n\nthe footer` }],
          },
          { type: "rich_text_section", elements: [{ type: "link", text: "t1", url: MESSAGE.links[0]?.url }] },
        ],
      },
    ],
  });
  const title = "<!channel> & co";
  expect(JSON.parse(formatChat("slack", { ...MESSAGE, title })).text).toBe("&lt;!channel&gt; &amp; co");
});

test("Mattermost shows a sender's text in a block of code, which it cannot end", () => {
  const { text } = JSON.parse(formatChat("mattermost", MESSAGE));
  const [title, begin, ...rest] = text.split("\n");
  expect([title, begin]).toEqual(["**1 transfer needs a password**", "```text"]);
  expect(rest.indexOf("```")).toBe(rest.length - 2);
  expect(rest.slice(0, -2).join("\n")).toBe(`${MESSAGE.text.replaceAll("`", "'")}\n\nthe footer`);
  expect(rest.at(-1)).toBe(`[t1](${MESSAGE.links[0]?.url})`);
});

test("Teams shows a sender's text in runs, which have no Markdown, line by line", () => {
  const { type, attachments } = JSON.parse(formatChat("teams", MESSAGE));
  expect([type, attachments[0].contentType]).toEqual(["message", "application/vnd.microsoft.card.adaptive"]);
  const { body } = attachments[0].content;
  const runs = body.map(({ inlines }: { inlines: object[] }) => inlines[0]);
  expect(new Set(body.map((block: { type: string }) => block.type))).toEqual(new Set(["RichTextBlock"]));
  expect(runs).toEqual([
    { type: "TextRun", text: MESSAGE.title, weight: "Bolder" },
    ...[`  t1 from ${EVIL}`, "  second line", "the footer"].map((text) => ({
      type: "TextRun",
      text,
      fontType: "Monospace",
    })),
    {
      type: "TextRun",
      text: "t1",
      selectAction: { type: "Action.OpenUrl", url: MESSAGE.links[0]?.url },
    },
  ]);
});

describe.each(CHAT_FORMATS)("a message for %s", (format) => {
  test("stays below every limit, and keeps its footer", () => {
    const links = Array.from({ length: 30 }, (_, at) => ({ label: `t${at}`, url: `https://x/${at}` }));
    const long = { label: "long", url: `https://x/${"y".repeat(500)}` };
    for (const text of ["€".repeat(50_000), "x\n".repeat(50_000), "\u{202e}".repeat(9_000)]) {
      const body = formatChat(format, { ...MESSAGE, text, links: [long, ...links] });
      expect(Buffer.byteLength(body)).toBeLessThan(28_000);
      expect(body).toContain("does not fit into this message");
      expect(body).toContain("the footer");
      expect(body).not.toMatch(/yyy|t10/);
    }
  });

  test("labels a link with nothing that could be markup", () => {
    fc.assert(
      fc.property(fc.string(), (label) => {
        const body = formatChat(format, { ...MESSAGE, links: [{ label, url: "https://x/1" }] });
        expect(body).toContain(/^[A-Za-z0-9.-]{1,100}$/.test(label) ? label : "Transfer");
        if (/[^\w.-]{4}/.test(label)) expect(body).not.toContain(label);
      }),
    );
    const body = formatChat(format, { ...MESSAGE, links: [{ label: "a](https://evil.example)", url: "u" }] });
    expect(body).not.toContain("a](");
  });
});
