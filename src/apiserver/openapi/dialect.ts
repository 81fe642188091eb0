// The differences between OpenAPI 3 and Swagger 2 in the notation of schemas.

/** A schema as JSON: `{ type: 'string', description: '…' }`. */
export type Schema = Readonly<Record<string, unknown>>

export interface Dialect {
  /** Returns a reference to a named schema. */
  ref(name: string): Schema
  /** Returns a reference with the description and other annotations of the referring field. */
  refWith(name: string, annotations: Schema): Schema
  /** Returns the schema of a value of either type. */
  oneOfTypes(first: string, second: string): Schema
  /** Whether `default` is published. */
  readonly publishesDefaults: boolean
}

export const openApi3: Dialect = {
  ref: (name) => ({ $ref: `#/components/schemas/${name}` }),
  // OpenAPI 3 ignores siblings of $ref, so the reference is wrapped in allOf.
  refWith: (name, annotations) => ({ allOf: [{ $ref: `#/components/schemas/${name}` }], ...annotations }),
  oneOfTypes: (first, second) => ({ oneOf: [{ type: first }, { type: second }] }),
  publishesDefaults: true,
}

export const swagger2: Dialect = {
  ref: (name) => ({ $ref: `#/definitions/${name}` }),
  refWith: (name, annotations) => ({ $ref: `#/definitions/${name}`, ...annotations }),
  oneOfTypes: () => ({ type: 'string' }), // kubectl accepts any scalar for a string
  publishesDefaults: false,
}
