// Declares the parameters and attributes of a plugin: their purpose, allowed values and type. `provision` and `modify` receive
// values of the declared types. read-parameters.ts and ../../plugin-changes/plugin-driver.ts apply the declarations.
import { isQuantity, parseQuantity, quantitySign, quantityToBytes } from '../../../api/quantity.ts'

export interface Parameter<T = unknown> {
  /** The purpose of the parameter, which messages contain. */
  readonly doc: string
  /** The allowed values, which messages contain after "expected": `fast or slow`. */
  readonly expected: string
  /** Whether a class without the parameter is rejected. */
  readonly required: boolean
  /** The value if the class does not set the parameter. */
  readonly default: T | undefined
  /** Whether the value is a credential. It is redacted in messages, and a volume that contains it is rejected. */
  readonly sensitive: boolean
  /** All allowed values, if they can be listed. */
  readonly values?: readonly string[]
  /** Returns the value, or undefined if the text is invalid. */
  parse(text: string): T | undefined
}

export type ParameterDeclarations = Readonly<Record<string, Parameter>>

export type ParameterValues<P extends ParameterDeclarations> = {
  readonly [K in keyof P]: P[K] extends Parameter<infer T> ? T : never
}

interface CommonOptions<T> {
  readonly doc: string
  readonly required?: boolean
  readonly default?: T
  readonly sensitive?: boolean
}

/** The type that `provision` receives. It includes undefined only if the class may omit the parameter. */
type Value<T, O> = O extends { readonly required: true } | { readonly default: T } ? T : T | undefined

function text<const O extends CommonOptions<string> & { readonly pattern?: RegExp; readonly expected?: string }>(
  options: O,
) {
  const { pattern, expected = pattern ? `a string that matches ${pattern}` : 'a non-empty string' } = options
  const isValid = (text: string) => (pattern ? text.search(pattern) >= 0 : text !== '')
  return declare<string, O>(options, { expected, parse: (text) => (isValid(text) ? text : undefined) })
}

function choice<const V extends string, const O extends CommonOptions<NoInfer<V>>>(values: readonly V[], options: O) {
  const expected = values.length > 1 ? `${values.slice(0, -1).join(', ')} or ${values.at(-1)}` : `${values[0]}`
  return declare<V, O>(options, { expected, values, parse: (text) => values.find((value) => value === text) })
}

function integer<const O extends CommonOptions<number> & { readonly min?: number; readonly max?: number }>(options: O) {
  const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER } = options
  const lowerBound = options.min === undefined ? '' : ` from ${min}`
  const upperBound = options.max === undefined ? '' : ` up to ${max}`
  return declare<number, O>(options, {
    expected: `an integer${lowerBound}${upperBound}`,
    parse(text) {
      const value = /^-?[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN
      return value >= min && value <= max ? value : undefined
    },
  })
}

/** A number of bytes, as a quantity such as `10Gi`. */
function bytes<const O extends CommonOptions<bigint>>(options: O) {
  return declare<bigint, O>(options, {
    expected: 'a number of bytes, such as 10Gi',
    parse: (text) => (isQuantity(text) && quantitySign(text) >= 0 ? quantityToBytes(parseQuantity(text)) : undefined),
  })
}

function flag<const O extends CommonOptions<boolean>>(options: O) {
  return declare<boolean, O>(options, {
    expected: 'true or false',
    values: ['true', 'false'],
    parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
  })
}

/** A parameter of any other type. `parse` returns the value, or undefined if the text is invalid. */
function custom<T, const O extends CommonOptions<T> = CommonOptions<T>>(
  options: O & { readonly expected: string; parse(text: string): T | undefined },
) {
  return declare<T, O>(options, options)
}

/** Declares a parameter of each type. */
export const parameter = { text, choice, integer, bytes, flag, custom }

function declare<T, O extends CommonOptions<T>>(
  { doc, required = false, default: defaultValue, sensitive = false }: CommonOptions<T>,
  { expected, values, parse }: Pick<Parameter<T>, 'expected' | 'values' | 'parse'>,
): Parameter<Value<T, O>> {
  const allowedValues = values ? { values } : {}
  // Value<T, O> depends on the options, which the compiler cannot follow here.
  return { doc, expected, required, sensitive, default: defaultValue, ...allowedValues, parse } as Parameter<
    Value<T, O>
  >
}
