// Collects validation errors by field. Validation rules add errors to a FieldErrors, and the API server returns them in one
// 422 Status. Messages have the Kubernetes format, because clients and scripts match on them.

export type FieldErrorType =
  | 'Required'
  | 'Invalid'
  | 'NotSupported'
  | 'Forbidden'
  | 'Duplicate'
  | 'TooLong'
  | 'TooMany'
  | 'NotFound'
  | 'TypeInvalid'

export interface FieldError {
  readonly type: FieldErrorType
  /** Path from the object's root: `spec.resources.requests[storage]`. */
  readonly field: string
  /** The message without the path, as a Status cause shows it. */
  readonly message: string
}

const CAUSES: Record<FieldErrorType, { reason: string; text: string }> = {
  Required: { reason: 'FieldValueRequired', text: 'Required value' },
  Invalid: { reason: 'FieldValueInvalid', text: 'Invalid value' },
  NotSupported: { reason: 'FieldValueNotSupported', text: 'Unsupported value' },
  Forbidden: { reason: 'FieldValueForbidden', text: 'Forbidden' },
  Duplicate: { reason: 'FieldValueDuplicate', text: 'Duplicate value' },
  TooLong: { reason: 'FieldValueTooLong', text: 'Too long' },
  TooMany: { reason: 'FieldValueTooMany', text: 'Too many' },
  NotFound: { reason: 'FieldValueNotFound', text: 'Not found' },
  TypeInvalid: { reason: 'FieldValueTypeInvalid', text: 'Invalid value' },
}

export const causeReason = (type: FieldErrorType): string => CAUSES[type].reason

/** Further errors are dropped, so that a hostile object cannot cause a huge response. */
const FIELD_ERRORS_MAX = 100

export class FieldErrors {
  readonly list: FieldError[] = []

  required(field: string, detail = ''): void {
    this.#add('Required', field, detail)
  }
  invalid(field: string, value: unknown, detail: string): void {
    this.#add('Invalid', field, detail, value)
  }
  notSupported(field: string, value: unknown, supported: readonly string[]): void {
    this.#add('NotSupported', field, `supported values: ${supported.map(quote).join(', ')}`, value)
  }
  forbidden(field: string, detail: string): void {
    this.#add('Forbidden', field, detail)
  }
  duplicate(field: string, value: unknown): void {
    this.#add('Duplicate', field, '', value)
  }
  /** Adds an error with the limit in bytes. The message does not contain the value. */
  tooLong(field: string, max: number): void {
    this.#add('TooLong', field, `may not be more than ${max} bytes`)
  }
  tooMany(field: string, actual: number, max: number): void {
    this.#add('TooMany', field, `must have at most ${max} items`, actual)
  }
  notFound(field: string, value: unknown): void {
    this.#add('NotFound', field, '', value)
  }
  typeInvalid(field: string, value: unknown, detail: string): void {
    this.#add('TypeInvalid', field, detail, value)
  }
  /** Adds one Invalid error per detail. */
  invalidAll(field: string, value: unknown, details: readonly string[]): void {
    for (const detail of details) this.invalid(field, value, detail)
  }
  /** Adds the errors of a part of the object, with `field` before their paths. */
  addNested(field: string, errors: FieldErrors): void {
    for (const error of errors.list) {
      if (this.list.length >= FIELD_ERRORS_MAX) return
      this.list.push({ ...error, field: `${field}.${error.field}` })
    }
  }
  get hasErrors(): boolean {
    return this.list.length > 0
  }

  #add(type: FieldErrorType, field: string, detail: string, ...value: [unknown?]): void {
    if (this.list.length >= FIELD_ERRORS_MAX) return
    const parts = [CAUSES[type].text]
    if (value.length > 0) parts.push(formatValue(value[0]))
    if (detail) parts.push(detail)
    this.list.push({ type, field, message: parts.join(': ') })
  }
}

/** Formats one error as `spec.x: Invalid value: "y": reason` and several as `[first, second]`. */
export function formatFieldErrors(errors: readonly FieldError[]): string {
  const texts = errors.map((error) => `${error.field}: ${error.message}`)
  return texts.length === 1 ? texts[0]! : `[${texts.join(', ')}]`
}

const VALUE_CHARACTERS_MAX = 1_000 // longer values are truncated in messages

function formatValue(value: unknown): string {
  if (value === undefined || value === null) return 'null'
  const text = JSON.stringify(value)
  return text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX)}…` : text
}

const quote = (text: string): string => JSON.stringify(text)
