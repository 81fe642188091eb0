// Declarations of the class parameters of a plugin: purpose, allowed values and type. The declared type is the type that
// `provision` receives. read-parameters.ts applies the declarations.
import { isQuantity, parseQuantity, quantitySign, quantityToBytes } from '../../../api/quantity.ts'

export interface Parameter<T = unknown> {
  /** What it is for; shown in messages. */
  readonly doc: string
  /** The allowed values, shown in messages after "expected": `fast or slow`. */
  readonly expected: string
  /** A class without it is rejected. */
  readonly required: boolean
  /** Used if the class does not set it. */
  readonly default: T | undefined
  /** A credential: removed from every message, and a volume that contains it is rejected. */
  readonly sensitive: boolean
  /** All allowed values, if they can be listed. */
  readonly values?: readonly string[]
  /** The value, or undefined if the text is not valid. */
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

/** The type that `provision` receives: includes undefined only if the class may omit the parameter. */
type Value<T, O> = O extends { readonly required: true } | { readonly default: T } ? T : T | undefined

function text<const O extends CommonOptions<string> & { readonly pattern?: RegExp; readonly expected?: string }>(
  options: O,
) {
  const { pattern, expected = pattern ? `text that matches ${pattern}` : 'text that is not empty' } = options
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
    expected: `a whole number${lowerBound}${upperBound}`,
    parse(text) {
      const value = /^-?[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN
      return value >= min && value <= max ? value : undefined
    },
  })
}

/** An amount of bytes, written as in claims: `10Gi`. */
function bytes<const O extends CommonOptions<bigint>>(options: O) {
  return declare<bigint, O>(options, {
    expected: 'an amount of bytes, such as 10Gi',
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

/** Any other type: `parse` returns the value, or undefined if the text is not valid. */
function custom<T, const O extends CommonOptions<T> = CommonOptions<T>>(
  options: O & { readonly expected: string; parse(text: string): T | undefined },
) {
  return declare<T, O>(options, options)
}

/** The kinds of parameters. */
export const parameter = { text, choice, integer, bytes, flag, custom }

function declare<T, O extends CommonOptions<T>>(
  { doc, required = false, default: defaultValue, sensitive = false }: CommonOptions<T>,
  { expected, values, parse }: Pick<Parameter<T>, 'expected' | 'values' | 'parse'>,
): Parameter<Value<T, O>> {
  const allowedValues = values ? { values } : {}
  // Given<T, O> depends on the options, which the compiler cannot follow here.
  return { doc, expected, required, sensitive, default: defaultValue, ...allowedValues, parse } as Parameter<
    Value<T, O>
  >
}
