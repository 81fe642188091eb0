// Whether a claim is this provisioner's to provide for, and by which class and on which node. Pure.
// What has been begun already is not asked here: plan-claim.ts.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf, claimClassName } from '../../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { PROVISIONER, PROVISIONER_BETA, SELECTED_NODE, SELECTED_NODE_ALPHA } from '../../volumes/names.ts'

export type Selection =
  | { readonly is: 'selected'; readonly storageClass: Readonly<StorageClass> }
  | { readonly is: 'notOurs' }
  /** Someone else's move. */
  | { readonly is: 'waiting'; readonly because: string }
  /** The user has to act, and is told. */
  | { readonly is: 'impossible'; readonly because: string }

export function selectClaim(
  claim: Readonly<PersistentVolumeClaim>,
  storageClass: Readonly<StorageClass> | undefined,
  provisionerName: string,
): Selection {
  if (!isAsked(claim, provisionerName)) return { is: 'notOurs' }
  if (!storageClass) return { is: 'impossible', because: missingClass(claim) }
  if (storageClass.provisioner !== provisionerName) return { is: 'notOurs' }
  if (isDelayed(storageClass) && !annotationOf(claim, SELECTED_NODE)) {
    const { name } = storageClass.metadata
    return { is: 'waiting', because: `class "${name}" waits for a pod, and no node has been chosen for one yet` }
  }
  return { is: 'selected', storageClass }
}

/** The claim wants a volume, and the binder has asked this provisioner for it. */
export function isAsked(claim: Readonly<PersistentVolumeClaim>, provisionerName: string): boolean {
  const asked = annotationOf(claim, PROVISIONER) ?? annotationOf(claim, PROVISIONER_BETA)
  return asked === provisionerName && !claim.spec?.volumeName
}

/** Also by the name of old, where nothing else names a node. */
export const selectedNodeOf = (claim: Readonly<PersistentVolumeClaim>): string | undefined =>
  (annotationOf(claim, SELECTED_NODE) ?? annotationOf(claim, SELECTED_NODE_ALPHA)) || undefined

const missingClass = (claim: Readonly<PersistentVolumeClaim>): string => {
  const name = claimClassName(claim)
  return name
    ? `storageclass.storage.k8s.io "${name}" not found: create it, or make the claim anew with a class that exists`
    : 'the claim names no storage class: set spec.storageClassName'
}

const isDelayed = ({ volumeBindingMode }: Readonly<StorageClass>): boolean =>
  volumeBindingMode === 'WaitForFirstConsumer'
