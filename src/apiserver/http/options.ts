// Parses the query parameters and DeleteOptions bodies of requests, and rejects invalid ones.
import { FieldErrors } from '../../api/field-errors.ts'
import type { FieldRequirement, LabelSelector } from '../../api/selectors.ts'
import { badRequest, invalid } from '../../api/status-error.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import { parseSelectors } from './parse-selectors.ts'
import { parseBooleanQuery } from './route.ts'

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'

export interface WriteOptions {
  readonly dryRun: boolean
  readonly fieldManager: string
  readonly fieldValidation: FieldValidation
  readonly force: boolean
}

const META_GROUP = 'meta.k8s.io'
const FIELD_MANAGER_LENGTH_MAX = 128

export function parseWriteOptions(kind: string, query: URLSearchParams, userAgent: string | undefined): WriteOptions {
  const errors = new FieldErrors()
  const dryRun = parseDryRun(query.getAll('dryRun'), errors)
  const manager = query.get('fieldManager') ?? ''
  checkFieldManager(manager, 'fieldManager', errors)
  const validation = query.get('fieldValidation') ?? ''
  if (!['', 'Ignore', 'Warn', 'Strict'].includes(validation)) {
    errors.notSupported('fieldValidation', validation, ['', 'Ignore', 'Strict', 'Warn'])
  }
  const force = parseBooleanQuery(query, 'force')
  if (errors.hasErrors) throw invalid({ group: META_GROUP, kind }, '', errors.list)
  return {
    dryRun,
    fieldManager: manager || (userAgent?.split('/')[0] ?? '').slice(0, FIELD_MANAGER_LENGTH_MAX) || 'unknown',
    fieldValidation: (validation || 'Warn') as FieldValidation,
    force,
  }
}

export function checkFieldManager(manager: string, field: string, errors: FieldErrors): void {
  if (manager.length > FIELD_MANAGER_LENGTH_MAX) errors.tooLong(field, FIELD_MANAGER_LENGTH_MAX)
  else if (!/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u.test(manager)) {
    errors.invalid(field, manager, 'should only contain printable characters')
  }
}

/** Requires `fieldManager` for an apply, and allows `force` only for an apply. */
export function checkPatchOptions(query: URLSearchParams, isApply: boolean): void {
  const errors = new FieldErrors()
  if (isApply && !query.get('fieldManager')) errors.required('fieldManager', 'is required for apply patch')
  if (!isApply && parseBooleanQuery(query, 'force'))
    errors.forbidden('force', 'may not be specified for non-apply patch')
  if (errors.hasErrors) throw invalid({ group: META_GROUP, kind: 'PatchOptions' }, '', errors.list)
}

function parseDryRun(values: readonly string[], errors: FieldErrors): boolean {
  const requestedValues = values.filter((value) => value !== '')
  for (const value of requestedValues) if (value !== 'All') errors.notSupported('dryRun', value, ['All'])
  return requestedValues.length > 0
}

export interface ListOptions {
  readonly labelSelector: LabelSelector
  readonly fieldSelector: readonly FieldRequirement[]
  readonly resourceVersion: number | undefined
  readonly resourceVersionMatch: 'Exact' | 'NotOlderThan' | undefined
  readonly limit: number
  readonly continueToken: string
  readonly watch: boolean
  readonly allowBookmarks: boolean
  readonly sendInitialEvents: boolean | undefined
  readonly timeoutSeconds: number | undefined
}

export function parseListOptions(query: URLSearchParams, watch: boolean): ListOptions {
  const errors = new FieldErrors()
  const { labelSelector, fieldSelector } = parseSelectors(query)
  const resourceVersion = parseResourceVersion(query.get('resourceVersion'), errors)
  const match = query.get('resourceVersionMatch') ?? ''
  const continueToken = watch ? '' : (query.get('continue') ?? '')
  const sendInitialEvents = query.has('sendInitialEvents') ? parseBooleanQuery(query, 'sendInitialEvents') : undefined

  if (match !== '') {
    if (resourceVersion === undefined && !watch) {
      errors.forbidden('resourceVersionMatch', 'resourceVersionMatch is forbidden unless resourceVersion is provided')
    }
    if (continueToken) {
      errors.forbidden('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided')
    }
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      errors.notSupported('resourceVersionMatch', match, ['Exact', 'NotOlderThan', ''])
    } else if (watch && match !== 'NotOlderThan') {
      errors.notSupported('resourceVersionMatch', match, ['NotOlderThan'])
    } else if (match === 'Exact' && resourceVersion === 0) {
      errors.forbidden('resourceVersionMatch', 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    }
    if (watch && sendInitialEvents === undefined) {
      errors.forbidden(
        'resourceVersionMatch',
        'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
      )
    }
  }
  if (sendInitialEvents !== undefined) {
    if (!watch) errors.forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list')
    else if (match === '') {
      errors.forbidden(
        'resourceVersionMatch',
        'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
      )
    }
  }
  if (errors.hasErrors) throw invalid({ group: META_GROUP, kind: 'ListOptions' }, '', errors.list)
  if (continueToken && resourceVersion) {
    throw badRequest('specifying resource version is not allowed when using continue')
  }
  return {
    labelSelector,
    fieldSelector,
    resourceVersion,
    resourceVersionMatch: match === '' ? undefined : (match as 'Exact' | 'NotOlderThan'),
    limit: parseCount(query, 'limit') ?? 0,
    continueToken,
    watch,
    allowBookmarks: parseBooleanQuery(query, 'allowWatchBookmarks'),
    sendInitialEvents,
    timeoutSeconds: parseCount(query, 'timeoutSeconds'),
  }
}

function parseResourceVersion(text: string | null, errors: FieldErrors): number | undefined {
  if (text === null || text === '') return undefined
  const version = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(version)) return version
  errors.invalid('resourceVersion', text, 'must be a decimal number, as returned by this server')
  return undefined
}

/** Returns the minimum revision that a GET requests. */
export function parseGetVersion(query: URLSearchParams): number {
  const errors = new FieldErrors()
  const version = parseResourceVersion(query.get('resourceVersion'), errors)
  if (errors.hasErrors) throw invalid({ group: META_GROUP, kind: 'GetOptions' }, '', errors.list)
  return version ?? 0
}

function parseCount(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  if (!/^-?\d{1,18}$/.test(text))
    throw badRequest(`query parameter ${name}: "${text.slice(0, 50)}" is not a whole number`)
  return Math.max(0, Math.min(Number(text), 2 ** 31))
}

export interface DeleteOptions {
  readonly dryRun: boolean
  readonly gracePeriodSeconds: number | undefined
  readonly propagationPolicy: 'Background' | 'Foreground' | 'Orphan' | undefined
  readonly uid: string | undefined
  readonly resourceVersion: string | undefined
}

/** Reads the options from the body if there is one, otherwise from the query. */
export function parseDeleteOptions(body: unknown, query: URLSearchParams): DeleteOptions {
  const errors = new FieldErrors()
  const options = body === undefined ? deleteOptionsFromQuery(query) : deleteOptionsFromBody(body)
  const dryRun = parseDryRun([...query.getAll('dryRun'), ...(options.dryRun ?? [])], errors) // allowed in both
  let propagation = options.propagationPolicy
  if (propagation !== undefined && options.orphanDependents !== undefined) {
    errors.invalid('propagationPolicy', propagation, 'orphanDependents and deletionPropagation cannot be both set')
  } else if (propagation !== undefined && !['Background', 'Foreground', 'Orphan'].includes(propagation)) {
    errors.notSupported('propagationPolicy', propagation, ['Foreground', 'Background', 'Orphan'])
  }
  if (options.orphanDependents !== undefined) propagation = options.orphanDependents ? 'Orphan' : 'Background'
  if (errors.hasErrors) throw invalid({ group: META_GROUP, kind: 'DeleteOptions' }, '', errors.list)
  const gracePeriod = options.gracePeriodSeconds
  return {
    dryRun,
    // As in Kubernetes, a negative grace period means the shortest one that is not zero.
    gracePeriodSeconds: gracePeriod === undefined ? undefined : gracePeriod < 0 ? 1 : gracePeriod,
    propagationPolicy: propagation as DeleteOptions['propagationPolicy'],
    uid: options.uid,
    resourceVersion: options.resourceVersion,
  }
}

interface RawDeleteOptions {
  dryRun?: string[]
  gracePeriodSeconds?: number
  propagationPolicy?: string
  orphanDependents?: boolean
  uid?: string
  resourceVersion?: string
}

function deleteOptionsFromQuery(query: URLSearchParams): RawDeleteOptions {
  const gracePeriod = query.get('gracePeriodSeconds')
  if (gracePeriod && !/^-?\d{1,15}$/.test(gracePeriod)) {
    throw badRequest(`query parameter gracePeriodSeconds: "${gracePeriod.slice(0, 50)}" is not a whole number`)
  }
  return {
    gracePeriodSeconds: gracePeriod ? Number(gracePeriod) : undefined,
    propagationPolicy: query.get('propagationPolicy') || undefined,
    orphanDependents: query.has('orphanDependents') ? parseBooleanQuery(query, 'orphanDependents') : undefined,
  }
}

function deleteOptionsFromBody(body: unknown): RawDeleteOptions {
  const typeError = (field: string, expected: string) => badRequest(`DeleteOptions: ${field} must be ${expected}`)
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw typeError('the body', 'an object')
  const options: AnyObject = body
  if (options.kind !== undefined && options.kind !== '' && options.kind !== 'DeleteOptions') {
    throw badRequest(`expected DeleteOptions in the body of a delete, got ${String(options.kind).slice(0, 100)}`)
  }
  const { dryRun, gracePeriodSeconds, propagationPolicy, orphanDependents, preconditions } = options
  if (dryRun != null && !(Array.isArray(dryRun) && dryRun.every((value) => typeof value === 'string'))) {
    throw typeError('dryRun', 'a list of strings')
  }
  if (gracePeriodSeconds != null && !Number.isInteger(gracePeriodSeconds))
    throw typeError('gracePeriodSeconds', 'a whole number')
  if (propagationPolicy != null && typeof propagationPolicy !== 'string')
    throw typeError('propagationPolicy', 'a string')
  if (orphanDependents != null && typeof orphanDependents !== 'boolean')
    throw typeError('orphanDependents', 'true or false')
  if (preconditions != null && typeof preconditions !== 'object') throw typeError('preconditions', 'an object')
  const uid = preconditions?.uid
  const resourceVersion = preconditions?.resourceVersion
  if (uid != null && typeof uid !== 'string') throw typeError('preconditions.uid', 'a string')
  if (resourceVersion != null && typeof resourceVersion !== 'string')
    throw typeError('preconditions.resourceVersion', 'a string')
  return {
    dryRun: dryRun ?? undefined,
    gracePeriodSeconds: gracePeriodSeconds ?? undefined,
    propagationPolicy: propagationPolicy ?? undefined,
    orphanDependents: orphanDependents ?? undefined,
    uid: uid || undefined,
    resourceVersion: resourceVersion || undefined,
  }
}
