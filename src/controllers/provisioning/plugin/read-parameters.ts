// Reads class parameters according to the declarations of a plugin. Returns typed values or the reason to reject the class.
// Messages never contain values of sensitive parameters. Pure.

import { quoteNames, truncate } from './message-text.ts'
import type { Parameter, ParameterDeclarations } from './parameter.ts'

export type ParametersResult =
  | { readonly is: 'read'; readonly values: Readonly<Record<string, unknown>>; readonly secrets: readonly string[] }
  | { readonly is: 'rejected'; readonly message: string }

export function readParameters(
  declarations: ParameterDeclarations,
  parameters: Readonly<Record<string, string>>,
  { className, provisioner }: { readonly className: string; readonly provisioner: string },
): ParametersResult {
  const reject = (problem: string): ParametersResult => ({
    is: 'rejected',
    message: `Class ${quoteNames([className])} ${problem} Parameters of a class are immutable: recreate the class.`,
  })
  const unknownNames = Object.keys(parameters).filter((name) => !Object.hasOwn(declarations, name))
  if (unknownNames.length > 0) {
    return reject(
      `has parameters that ${provisioner} does not support: ${quoteNames(unknownNames)}. ${describeSupport(declarations)}`,
    )
  }
  const values: [string, unknown][] = []
  const secrets: string[] = []
  for (const [name, declaration] of Object.entries(declarations)) {
    const { doc, expected, required, sensitive, default: defaultValue } = declaration
    const text = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    if (text === undefined) {
      if (required) return reject(`lacks the parameter "${name}" (${doc}); expected ${expected}.`)
      values.push([name, defaultValue])
      continue
    }
    if (sensitive && text !== '') secrets.push(text)
    const value = tryParse(declaration, text)
    if (value === undefined) {
      const valueText = sensitive ? 'an invalid value' : JSON.stringify(truncate(text))
      return reject(`has ${valueText} for the parameter "${name}" (${doc}); expected ${expected}.`)
    }
    values.push([name, value])
  }
  return { is: 'read', values: Object.freeze(Object.fromEntries(values)), secrets }
}

/** Returns undefined if `parse` throws. The message of the error is discarded, because it may contain a secret. */
function tryParse(declaration: Parameter, text: string): unknown {
  try {
    return declaration.parse(text)
  } catch {
    return undefined
  }
}

const describeSupport = (declarations: ParameterDeclarations): string => {
  const names = Object.keys(declarations)
  return names.length > 0 ? `The provisioner supports ${quoteNames(names)}.` : 'The provisioner supports none.'
}
