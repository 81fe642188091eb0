// Checks the metadata of an object and its immutable fields.
import { format, isEqualJson, mapBytes, type Report } from './findings.ts'
import { isDnsLabel, isLabelValue, isQualifiedName, isUid } from './names.ts'

const ANNOTATION_BYTES_MAX = 256 * 1024
/** Standard finalizers without a domain. */
const PLAIN_FINALIZERS = ['kubernetes', 'orphan', 'foregroundDeletion']

export interface MetadataRules {
  readonly namespaced: boolean
  isName(text: string): boolean
  /** Whether finalizers without a domain must be standard ones. */
  readonly knownFinalizersOnly: boolean
  readonly countsGenerations?: boolean
}

export function checkMetadata(meta: any, rules: MetadataRules, report: Report, old?: any): void {
  if (typeof meta?.name !== 'string' || !rules.isName(meta.name))
    report('metadata.name', `${format(meta?.name)} is not a valid name`)
  if (rules.namespaced && !isDnsLabel(meta.namespace ?? ''))
    report('metadata.namespace', `${format(meta.namespace)} is not a valid name`)
  if (!rules.namespaced && meta.namespace !== undefined)
    report('metadata.namespace', 'must be absent for cluster-scoped kinds')
  if (!isUid(meta.uid)) report('metadata.uid', `${format(meta.uid)} is not a valid UID`)
  if (meta.creationTimestamp === undefined) report('metadata.creationTimestamp', 'missing')
  if (meta.resourceVersion !== undefined && !/^[1-9]\d*$/.test(meta.resourceVersion)) {
    report('metadata.resourceVersion', `${format(meta.resourceVersion)} is not a valid version`)
  }
  if (meta.selfLink !== undefined) report('metadata.selfLink', 'must be absent')
  if (meta.generation !== undefined && !(Number.isInteger(meta.generation) && meta.generation > 0)) {
    report('metadata.generation', `${format(meta.generation)} is not a valid count`)
  }
  if (rules.countsGenerations && meta.generation === undefined) report('metadata.generation', 'missing')
  if ((meta.deletionTimestamp === undefined) !== (meta.deletionGracePeriodSeconds === undefined)) {
    report('metadata.deletionGracePeriodSeconds', 'must be set together with deletionTimestamp')
  }
  if (meta.deletionGracePeriodSeconds < 0) report('metadata.deletionGracePeriodSeconds', 'is negative')
  checkLabelsAndAnnotations(meta, report)
  checkOwners(meta.ownerReferences ?? [], report)
  checkFinalizers(meta.finalizers ?? [], rules, report)
  if (old) checkMetadataChange(meta, old, report)
}

/** Checks what the metadata of an object and of a pod template have in common. */
export function checkLabelsAndAnnotations(meta: any, report: Report): void {
  for (const [key, value] of Object.entries<string>(meta.labels ?? {})) {
    if (!isQualifiedName(key)) report('metadata.labels', `${format(key)} is not a valid label key`)
    if (!isLabelValue(value)) report(`metadata.labels[${key}]`, `${format(value)} is not a valid label value`)
  }
  for (const key of Object.keys(meta.annotations ?? {})) {
    if (!isQualifiedName(key.toLowerCase()))
      report('metadata.annotations', `${format(key)} is not a valid annotation key`)
  }
  if (mapBytes(meta.annotations) > ANNOTATION_BYTES_MAX) report('metadata.annotations', 'too large')
}

function checkOwners(owners: readonly any[], report: Report): void {
  for (const [i, owner] of owners.entries()) {
    const fieldPath = `metadata.ownerReferences[${i}]`
    for (const field of ['apiVersion', 'kind', 'name', 'uid'])
      if (!owner[field]) report(`${fieldPath}.${field}`, 'missing')
    const [first = '', second, ...rest] = String(owner.apiVersion).split('/')
    if (rest.length > 0 || (second ?? first) === '')
      report(`${fieldPath}.apiVersion`, `${format(owner.apiVersion)} is not a valid version`)
    if (owner.apiVersion === 'v1' && owner.kind === 'Event') report(fieldPath, 'an Event cannot be an owner')
  }
  if (owners.filter(({ controller }) => controller === true).length > 1)
    report('metadata.ownerReferences', 'more than one controller')
}

function checkFinalizers(finalizers: readonly string[], rules: MetadataRules, report: Report): void {
  for (const name of finalizers) {
    if (!isQualifiedName(name)) report('metadata.finalizers', `${format(name)} is not a valid finalizer`)
    else if (rules.knownFinalizersOnly && !name.includes('/') && !PLAIN_FINALIZERS.includes(name)) {
      report('metadata.finalizers', `${format(name)} has no domain and is not a standard finalizer`)
    }
  }
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    report('metadata.finalizers', 'orphan and foregroundDeletion exclude each other')
  }
}

function checkMetadataChange(meta: any, old: any, report: Report): void {
  for (const field of ['name', 'namespace', 'uid', 'creationTimestamp', 'generateName']) {
    if (!isEqualJson(meta[field], old[field]))
      report(`metadata.${field}`, `changed from ${format(old[field])} to ${format(meta[field])}`)
  }
  if ((meta.generation ?? 0) < (old.generation ?? 0)) report('metadata.generation', 'decreased')
  if (old.deletionTimestamp === undefined) return
  if (meta.deletionTimestamp === undefined) report('metadata.deletionTimestamp', 'cannot be unset')
  else if (meta.deletionTimestamp > old.deletionTimestamp)
    report('metadata.deletionTimestamp', 'cannot be moved to later')
  const addedFinalizers = (meta.finalizers ?? []).filter((name: string) => !(old.finalizers ?? []).includes(name))
  const propagationFinalizers = ['orphan', 'foregroundDeletion'] // a second delete may choose another propagation
  if (addedFinalizers.some((name: string) => !propagationFinalizers.includes(name))) {
    report('metadata.finalizers', `${format(addedFinalizers)} were added after the deletion`)
  }
}
