// Reads class parameters by the declarations of a plugin: typed values, or the reason to reject the class. Pure. Messages
// never contain values of sensitive parameters.
import type { Parameter, ParameterDeclarations } from './parameter.ts'
import { quoteNames, truncate } from './wording.ts'

export type ReadParameters =
  | { readonly is: 'read'; readonly values: Readonly<Record<string, unknown>>; readonly secrets: readonly string[] }
  | { readonly is: 'rejected'; readonly because: string }

export function readParameters(
  declared: ParameterDeclarations,
  given: Readonly<Record<string, string>>,
  { className, provisioner }: { readonly className: string; readonly provisioner: string },
): ReadParameters {
  const reject = (why: string): ReadParameters => ({
    is: 'rejected',
    because: `Class ${quoteNames([className])} ${why} Parameters of a class cannot change: create it again.`,
  })
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(declared, name))
  if (unknown.length > 0) {
    return reject(`has parameters that ${provisioner} does not know: ${quoteNames(unknown)}. ${describeDeclared(declared)}`)
  }
  const values: [string, unknown][] = []
  const secrets: string[] = []
  for (const [name, rule] of Object.entries(declared)) {
    const { doc, expected, required, sensitive, default: otherwise } = rule
    const text = Object.hasOwn(given, name) ? given[name] : undefined
    if (text === undefined) {
      if (required) return reject(`lacks the parameter "${name}" (${doc}); expected ${expected}.`)
      values.push([name, otherwise])
      continue
    }
    if (sensitive && text !== '') secrets.push(text)
    const value = tryParse(rule, text)
    if (value === undefined) {
      const shown = sensitive ? 'an invalid value' : JSON.stringify(truncate(text))
      return reject(`has ${shown} for the parameter "${name}" (${doc}); expected ${expected}.`)
    }
    values.push([name, value])
  }
  return { is: 'read', values: Object.freeze(Object.fromEntries(values)), secrets }
}

/** A rule that throws rejects the text. Its message may contain a secret and is dropped. */
function tryParse(rule: Parameter, text: string): unknown {
  try {
    return rule.parse(text)
  } catch {
    return undefined
  }
}

const describeDeclared = (declared: ParameterDeclarations): string => {
  const names = Object.keys(declared)
  return names.length > 0 ? `It knows ${quoteNames(names)}.` : 'It has none.'
}
