/** Addresses of pages, with their parameters. */
import type * as v from "valibot";
import { DEFAULT_SIZE, type ListQueryShape, type TransferFilter } from "../model/queries.ts";

/** What the page of open transfers shows. */
export type PageQuery = v.InferOutput<typeof ListQueryShape> & TransferFilter;

/** The address of a list with these parameters; empty ones are left out. */
export function linkTo(
  page: string,
  parameters: Readonly<Record<string, string | number | undefined>>,
): string {
  const used = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, String(value)] as [string, string]],
  );
  return used.length === 0 ? page : `${page}?${new URLSearchParams(used)}`;
}

/** The parameters that choose transfers. */
export function filterIn({ group, state, reason, mailbox, sender, text, since, until }: PageQuery) {
  return { group, state, reason, mailbox, sender, text, since, until };
}

/** The parameters of a query that differ from their defaults. */
export function parametersOf(query: PageQuery) {
  const { sort, page, size } = query;
  return {
    ...filterIn(query),
    sort: sort === "urgency" ? undefined : sort,
    size: size === DEFAULT_SIZE ? undefined : size,
    page: page === 1 ? undefined : page,
  };
}
