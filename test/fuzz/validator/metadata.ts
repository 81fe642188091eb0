// Metadata of every object, and its immutable fields.
import { mapBytes, type Say, same, show } from './findings.ts'
import { isDnsLabel, isLabelValue, isQualifiedName, isUid } from './names.ts'

const ANNOTATION_BYTES_MAX = 256 * 1024
/** Known finalizers without a domain. */
const PLAIN_FINALIZERS = ['kubernetes', 'orphan', 'foregroundDeletion']

export interface MetadataRules {
  readonly namespaced: boolean
  isName(text: string): boolean
  /** Whether finalizers without a domain must be among the known ones. */
  readonly knownFinalizersOnly: boolean
  readonly countsGenerations?: boolean
}

export function checkMetadata(meta: any, rules: MetadataRules, say: Say, old?: any): void {
  if (typeof meta?.name !== 'string' || !rules.isName(meta.name)) say('metadata.name', `${show(meta?.name)} is no name`)
  if (rules.namespaced && !isDnsLabel(meta.namespace ?? ''))
    say('metadata.namespace', `${show(meta.namespace)} is no name`)
  if (!rules.namespaced && meta.namespace !== undefined) say('metadata.namespace', 'belongs to no namespace')
  if (!isUid(meta.uid)) say('metadata.uid', `${show(meta.uid)} is no UID`)
  if (meta.creationTimestamp === undefined) say('metadata.creationTimestamp', 'missing')
  if (meta.resourceVersion !== undefined && !/^[1-9]\d*$/.test(meta.resourceVersion)) {
    say('metadata.resourceVersion', `${show(meta.resourceVersion)} is no version`)
  }
  if (meta.selfLink !== undefined) say('metadata.selfLink', 'is no longer served')
  if (meta.generation !== undefined && !(Number.isInteger(meta.generation) && meta.generation > 0)) {
    say('metadata.generation', `${show(meta.generation)} is no count`)
  }
  if (rules.countsGenerations && meta.generation === undefined) say('metadata.generation', 'missing')
  if ((meta.deletionTimestamp === undefined) !== (meta.deletionGracePeriodSeconds === undefined)) {
    say('metadata.deletionGracePeriodSeconds', 'comes and goes with deletionTimestamp')
  }
  if (meta.deletionGracePeriodSeconds < 0) say('metadata.deletionGracePeriodSeconds', 'is negative')
  for (const [key, value] of Object.entries<string>(meta.labels ?? {})) {
    if (!isQualifiedName(key)) say('metadata.labels', `${show(key)} is no label key`)
    if (!isLabelValue(value)) say(`metadata.labels[${key}]`, `${show(value)} is no label value`)
  }
  for (const key of Object.keys(meta.annotations ?? {})) {
    if (!isQualifiedName(key.toLowerCase())) say('metadata.annotations', `${show(key)} is no annotation key`)
  }
  if (mapBytes(meta.annotations) > ANNOTATION_BYTES_MAX) say('metadata.annotations', 'too large')
  checkOwners(meta.ownerReferences ?? [], say)
  checkFinalizers(meta.finalizers ?? [], rules, say)
  if (old) checkMetadataChange(meta, old, say)
}

function checkOwners(owners: readonly any[], say: Say): void {
  for (const [i, owner] of owners.entries()) {
    const at = `metadata.ownerReferences[${i}]`
    for (const field of ['apiVersion', 'kind', 'name', 'uid']) if (!owner[field]) say(`${at}.${field}`, 'missing')
    const [first = '', second, ...rest] = String(owner.apiVersion).split('/')
    if (rest.length > 0 || (second ?? first) === '') say(`${at}.apiVersion`, `${show(owner.apiVersion)} is no version`)
    if (owner.apiVersion === 'v1' && owner.kind === 'Event') say(at, 'an Event owns nothing')
  }
  if (owners.filter(({ controller }) => controller === true).length > 1)
    say('metadata.ownerReferences', 'two controllers')
}

function checkFinalizers(finalizers: readonly string[], rules: MetadataRules, say: Say): void {
  for (const name of finalizers) {
    if (!isQualifiedName(name)) say('metadata.finalizers', `${show(name)} is no finalizer`)
    else if (rules.knownFinalizersOnly && !name.includes('/') && !PLAIN_FINALIZERS.includes(name)) {
      say('metadata.finalizers', `${show(name)} has no domain and no meaning`)
    }
  }
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    say('metadata.finalizers', 'orphan and foregroundDeletion exclude each other')
  }
}

function checkMetadataChange(meta: any, old: any, say: Say): void {
  for (const field of ['name', 'namespace', 'uid', 'creationTimestamp', 'generateName']) {
    if (!same(meta[field], old[field]))
      say(`metadata.${field}`, `changed from ${show(old[field])} to ${show(meta[field])}`)
  }
  if ((meta.generation ?? 0) < (old.generation ?? 0)) say('metadata.generation', 'went back')
  if (old.deletionTimestamp === undefined) return
  if (meta.deletionTimestamp === undefined) say('metadata.deletionTimestamp', 'an object that goes cannot come back')
  else if (meta.deletionTimestamp > old.deletionTimestamp) say('metadata.deletionTimestamp', 'was put off')
  const added = (meta.finalizers ?? []).filter((name: string) => !(old.finalizers ?? []).includes(name))
  const byDeletion = ['orphan', 'foregroundDeletion'] // a second delete may choose another propagation
  if (added.some((name: string) => !byDeletion.includes(name))) {
    say('metadata.finalizers', `${show(added)} came after the deletion began`)
  }
}
