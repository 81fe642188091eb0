// Sets the defaults of a pod's volumes.

import { sourcesOf } from './pod-volume-rules.ts'
import type { Volume } from './pod-volumes-schema.ts'
import { defaultPullPolicy } from './pull-policy.ts'

const FILE_MODE = 0o644

export function setVolumeDefaults(volume: Volume): void {
  if (sourcesOf(volume).length === 0) volume.emptyDir = {}
  if (volume.hostPath) volume.hostPath.type ??= ''
  if (volume.image) volume.image.pullPolicy ??= defaultPullPolicy(volume.image.reference ?? '')
  for (const files of [volume.secret, volume.configMap, volume.downwardAPI, volume.projected]) {
    if (files) files.defaultMode ??= FILE_MODE
  }
  setFieldVersionDefaults(volume.downwardAPI?.items)
  for (const source of volume.projected?.sources ?? []) {
    if (source.serviceAccountToken) source.serviceAccountToken.expirationSeconds ??= 3_600
    setFieldVersionDefaults(source.downwardAPI?.items)
  }
  if (volume.ephemeral?.volumeClaimTemplate) volume.ephemeral.volumeClaimTemplate.spec.volumeMode ??= 'Filesystem'
  setInTreeDefaults(volume)
}

function setFieldVersionDefaults(files: readonly { fieldRef?: { apiVersion?: string } }[] | undefined): void {
  for (const { fieldRef } of files ?? []) if (fieldRef) fieldRef.apiVersion ??= 'v1'
}

function setInTreeDefaults({ iscsi, rbd, azureDisk, scaleIO }: Volume): void {
  if (iscsi) iscsi.iscsiInterface ??= 'default'
  if (rbd) {
    rbd.pool ??= 'rbd'
    rbd.user ??= 'admin'
    rbd.keyring ??= '/etc/ceph/keyring'
  }
  if (azureDisk) {
    azureDisk.cachingMode ??= 'ReadWrite'
    azureDisk.kind ??= 'Shared'
    azureDisk.fsType ??= 'ext4'
    azureDisk.readOnly ??= false
  }
  if (scaleIO) {
    scaleIO.storageMode ??= 'ThinProvisioned'
    scaleIO.fsType ??= 'xfs'
  }
}
