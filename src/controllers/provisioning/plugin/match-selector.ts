// Matches the selector of a claim with the labels that a plugin supports. Returns the accepted values of each label, or the
// reason why no volume can satisfy the selector. Pure.
import {
  type LabelRequirement,
  type LabelSelectorObject,
  labelSelectorFromObject,
  matchesLabels,
} from '../../../api/selectors.ts'
import type { LabelDeclarations } from './contract.ts'
import { quoteNames } from './message-text.ts'

export type SelectorResult =
  | { readonly is: 'matched'; readonly labels: Readonly<Record<string, readonly string[]>> }
  | { readonly is: 'rejected'; readonly message: string }

export function matchSelector(
  declarations: LabelDeclarations,
  selector: LabelSelectorObject | undefined,
  provisioner: string,
): SelectorResult {
  const reject = (problem: string): SelectorResult => ({ is: 'rejected', message: `The claim's selector ${problem}` })
  const requirements = requirementsOf(selector)
  if (typeof requirements === 'string') return reject(`cannot be read: ${requirements}.`)
  const declaredKeys = Object.keys(declarations)
  const undeclaredKeys = requirements.map(({ key }) => key).filter((key) => !declaredKeys.includes(key))
  if (undeclaredKeys.length > 0) {
    const hint =
      declaredKeys.length > 0
        ? `The provisioner supports ${quoteNames(declaredKeys)}: require only those, or create a volume with the other labels.`
        : 'The provisioner supports no selector: remove the selector, or create a volume with those labels.'
    return reject(
      `requires labels that ${provisioner} does not support: ${quoteNames([...new Set(undeclaredKeys)])}. ${hint}`,
    )
  }
  const labels: [string, readonly string[]][] = []
  for (const [key, values] of Object.entries(declarations)) {
    const keyRequirements = requirements.filter((requirement) => requirement.key === key)
    const acceptedValues = values.filter((value) => matchesLabels({ requirements: keyRequirements }, { [key]: value }))
    if (acceptedValues.length === 0) {
      return reject(
        `accepts no value of the label "${key}" that ${provisioner} supports: ${quoteNames(values)}. Require one of those.`,
      )
    }
    labels.push([key, Object.freeze(acceptedValues)])
  }
  return { is: 'matched', labels: Object.freeze(Object.fromEntries(labels)) }
}

/** Whether the labels satisfy the selector, if there is one. */
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
