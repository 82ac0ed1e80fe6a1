/** Content negotiation: parses headers that list choices with weights. */

/** Whether the client accepts a content encoding; one that it does not name is not accepted. */
export function acceptsEncoding(header: string | string[] | undefined, encoding: string): boolean {
  const choices = parseChoices(header);
  const choice = choices.find(({ name }) => name === encoding) ?? choices.find(({ name }) => name === "*");
  return choice !== undefined && choice.weight > 0;
}

/** The offered language with the highest weight; the first one if none is wanted. */
export function chooseLanguage<Language extends string>(
  header: string | undefined,
  offered: readonly [Language, ...Language[]],
): Language {
  const wanted = parseChoices(header)
    .filter(({ weight }) => weight > 0)
    .toSorted((a, b) => b.weight - a.weight);
  for (const { name } of wanted) {
    if (name === "*") return offered[0];
    const found = offered.find((language) => language === name.split("-")[0]);
    if (found !== undefined) return found;
  }
  return offered[0];
}

interface Choice {
  readonly name: string;
  readonly weight: number;
}

function parseChoices(header: string | string[] | undefined): readonly Choice[] {
  return [header ?? []]
    .flat()
    .join(",")
    .split(",")
    .map((part) => {
      const [name = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
      return { name, weight: Number.isNaN(Number(weight)) ? 0 : Number(weight) };
    })
    .filter(({ name }) => name !== "");
}
