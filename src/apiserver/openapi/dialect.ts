// The two ways in which OpenAPI 3 and Swagger 2 write the same schema down.

/** A schema as JSON: `{ type: 'string', description: '…' }`. */
export type Schema = Readonly<Record<string, unknown>>

export interface Dialect {
  /** A reference to a named schema. */
  ref(name: string): Schema
  /** A reference that says more about the place where it stands. */
  refWith(name: string, words: Schema): Schema
  /** A value of one of two types. */
  either(first: string, second: string): Schema
  /** Whether `default` is published. */
  readonly defaults: boolean
}

export const openApi3: Dialect = {
  ref: (name) => ({ $ref: `#/components/schemas/${name}` }),
  // Beside a $ref everything else is ignored, so what is said stands beside an allOf.
  refWith: (name, words) => ({ allOf: [{ $ref: `#/components/schemas/${name}` }], ...words }),
  either: (first, second) => ({ oneOf: [{ type: first }, { type: second }] }),
  defaults: true,
}

export const swagger2: Dialect = {
  ref: (name) => ({ $ref: `#/definitions/${name}` }),
  refWith: (name, words) => ({ $ref: `#/definitions/${name}`, ...words }),
  either: () => ({ type: 'string' }), // clients of this form take a string type as "any scalar"
  defaults: false,
}
