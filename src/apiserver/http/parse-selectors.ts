// Parses the selectors of a list or watch within bounds. Requests with the same text share the parsed selector, so that many
// watches of one program do not hold as many copies.
import {
  EVERYTHING,
  type FieldRequirement,
  type LabelSelector,
  parseFieldSelector,
  parseLabelSelector,
  SelectorError,
} from '../../api/selectors.ts'
import { badRequest } from '../../api/status-error.ts'
import { LruCache } from '../../base/lru-cache.ts'

const SELECTOR_CHARACTERS_MAX = 16_384
/** Bounded, because every object of a list and every event of a watch is compared with all requirements. */
const REQUIREMENTS_MAX = 100
/** Maximum number of shared label selectors, and of shared field selectors. */
const SHARED_SELECTORS_MAX = 250

export interface Selectors {
  readonly labelSelector: LabelSelector
  readonly fieldSelector: readonly FieldRequirement[]
}

const NO_FIELDS: readonly FieldRequirement[] = Object.freeze([])
const sharedLabels = new LruCache<string, LabelSelector>(SHARED_SELECTORS_MAX)
const sharedFields = new LruCache<string, readonly FieldRequirement[]>(SHARED_SELECTORS_MAX)

/** Throws 400 for a selector that is invalid, too long or has too many requirements. */
export function parseSelectors(query: URLSearchParams): Selectors {
  const labels = query.get('labelSelector')
  const fields = query.get('fieldSelector')
  return {
    labelSelector: labels ? parseSelector('labelSelector', labels, sharedLabels, parseLabels) : EVERYTHING,
    fieldSelector: fields ? parseSelector('fieldSelector', fields, sharedFields, parseFields) : NO_FIELDS,
  }
}

function parseSelector<T>(
  parameter: string,
  text: string,
  sharedSelectors: LruCache<string, T>,
  parse: (text: string) => T,
): T {
  if (text.length > SELECTOR_CHARACTERS_MAX) {
    throw badRequest(`${parameter} has ${text.length} characters; the maximum is ${SELECTOR_CHARACTERS_MAX}`)
  }
  const sharedSelector = sharedSelectors.get(text)
  if (sharedSelector !== undefined) return sharedSelector
  try {
    const selector = parse(text)
    sharedSelectors.set(text, selector)
    return selector
  } catch (error) {
    if (error instanceof SelectorError) throw badRequest(error.message)
    throw error
  }
}

function parseLabels(text: string): LabelSelector {
  const selector = parseLabelSelector(text)
  checkCount('labelSelector', selector.requirements.length)
  return selector
}

function parseFields(text: string): readonly FieldRequirement[] {
  const requirements = parseFieldSelector(text)
  checkCount('fieldSelector', requirements.length)
  return requirements
}

function checkCount(parameter: string, count: number): void {
  if (count > REQUIREMENTS_MAX) {
    throw badRequest(`${parameter} has ${count} requirements; the maximum is ${REQUIREMENTS_MAX}`)
  }
}
