// Matches the selector of a claim with the labels that a plugin supports: the accepted values per label, or the reason why
// no volume can satisfy the selector. Pure.
import {
  type LabelRequirement,
  type LabelSelectorObject,
  labelSelectorFromObject,
  matchesLabels,
} from '../../../api/selectors.ts'
import type { LabelDeclarations } from './contract.ts'
import { quoteNames } from './wording.ts'

export type ReadSelector =
  | { readonly is: 'read'; readonly labels: Readonly<Record<string, readonly string[]>> }
  | { readonly is: 'rejected'; readonly because: string }

export function readSelector(
  declared: LabelDeclarations,
  selector: LabelSelectorObject | undefined,
  provisioner: string,
): ReadSelector {
  const reject = (why: string): ReadSelector => ({ is: 'rejected', because: `The claim's selector ${why}` })
  const wanted = requirementsOf(selector)
  if (typeof wanted === 'string') return reject(`cannot be read: ${wanted}.`)
  const known = Object.keys(declared)
  const unknown = wanted.map(({ key }) => key).filter((key) => !known.includes(key))
  if (unknown.length > 0) {
    const offer =
      known.length > 0
        ? `It understands ${quoteNames(known)}: ask for those only, or create a volume that has the others.`
        : 'It understands no selector: leave it out, or create a volume that has those labels.'
    return reject(`asks for labels that ${provisioner} cannot give: ${quoteNames([...new Set(unknown)])}. ${offer}`)
  }
  const labels: [string, readonly string[]][] = []
  for (const [key, values] of Object.entries(declared)) {
    const requirements = wanted.filter((one) => one.key === key)
    const fitting = values.filter((value) => matchesLabels({ requirements }, { [key]: value }))
    if (fitting.length === 0) {
      return reject(
        `accepts no value of the label "${key}" that ${provisioner} can give: ${quoteNames(values)}. Ask for one of those.`,
      )
    }
    labels.push([key, Object.freeze(fitting)])
  }
  return { is: 'read', labels: Object.freeze(Object.fromEntries(labels)) }
}

/** Whether labels satisfy the selector; without a selector all do. */
export const satisfiesSelector = (
  selector: LabelSelectorObject | undefined,
  labels: Readonly<Record<string, string>>,
): boolean => !selector || matchesLabels(labelSelectorFromObject(selector), labels)

function requirementsOf(selector: LabelSelectorObject | undefined): readonly LabelRequirement[] | string {
  if (!selector) return []
  try {
    return labelSelectorFromObject(selector).requirements
  } catch (error) {
    return (error as Error).message
  }
}
