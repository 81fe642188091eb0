// Determines whether this provisioner provisions a claim, and with which class. Pure. plan-claim.ts also considers
// attempts in progress.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf, claimClassName } from '../../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { PROVISIONER, PROVISIONER_BETA, SELECTED_NODE, SELECTED_NODE_ALPHA } from '../../volumes/names.ts'

export type Selection =
  | { readonly is: 'selected'; readonly storageClass: Readonly<StorageClass> }
  | { readonly is: 'notAssigned' }
  /** Another component must act first. */
  | { readonly is: 'waiting'; readonly message: string }
  /** The user must act. An event reports the reason. */
  | { readonly is: 'impossible'; readonly message: string }

export function selectClaim(
  claim: Readonly<PersistentVolumeClaim>,
  storageClass: Readonly<StorageClass> | undefined,
  provisionerName: string,
): Selection {
  if (!isAssigned(claim, provisionerName)) return { is: 'notAssigned' }
  if (!storageClass) return { is: 'impossible', message: missingClassMessage(claim) }
  if (storageClass.provisioner !== provisionerName) return { is: 'notAssigned' }
  if (isDelayed(storageClass) && !annotationOf(claim, SELECTED_NODE)) {
    const { name } = storageClass.metadata
    return { is: 'waiting', message: `class "${name}" waits for a pod, but no node has been selected yet` }
  }
  return { is: 'selected', storageClass }
}

/** Whether the claim has no volume and the binder has requested one from this provisioner. */
export function isAssigned(claim: Readonly<PersistentVolumeClaim>, provisionerName: string): boolean {
  const annotation = annotationOf(claim, PROVISIONER) ?? annotationOf(claim, PROVISIONER_BETA)
  return annotation === provisionerName && !claim.spec?.volumeName
}

/** Reads the alpha annotation only if the other annotation is absent. */
export const selectedNodeOf = (claim: Readonly<PersistentVolumeClaim>): string | undefined =>
  (annotationOf(claim, SELECTED_NODE) ?? annotationOf(claim, SELECTED_NODE_ALPHA)) || undefined

const missingClassMessage = (claim: Readonly<PersistentVolumeClaim>): string => {
  const name = claimClassName(claim)
  return name
    ? `storageclass.storage.k8s.io "${name}" not found: create it, or recreate the claim with an existing class`
    : 'the claim names no storage class: set spec.storageClassName'
}

const isDelayed = ({ volumeBindingMode }: Readonly<StorageClass>): boolean =>
  volumeBindingMode === 'WaitForFirstConsumer'
