// Lists the objects that a pod or a volume names and that the agent of the pod's node needs: secrets, config maps, claims and
// the service account.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'

export type ReferencedResource = 'secrets' | 'configmaps' | 'persistentvolumeclaims' | 'serviceaccounts'

export interface ObjectReference {
  readonly resource: ReferencedResource
  readonly namespace: string
  readonly name: string
}

type PodSpec = NonNullable<Pod['spec']>
type PodVolume = NonNullable<PodSpec['volumes']>[number]
type Container = Pick<NonNullable<PodSpec['containers']>[number], 'env' | 'envFrom'>

export function referencesOfPod({ metadata, spec }: Readonly<Pod>): ObjectReference[] {
  const references: ObjectReference[] = []
  const add = (resource: ReferencedResource, name: string | null | undefined) => {
    if (name) references.push({ resource, namespace: metadata.namespace ?? '', name })
  }
  add('serviceaccounts', spec?.serviceAccountName)
  for (const { name } of spec?.imagePullSecrets ?? []) add('secrets', name)
  const containers: readonly Container[] = [
    ...(spec?.initContainers ?? []),
    ...(spec?.containers ?? []),
    ...(spec?.ephemeralContainers ?? []),
  ]
  for (const container of containers) addContainer(container, add)
  for (const volume of spec?.volumes ?? []) {
    addVolume(volume, add)
    if (volume.ephemeral) add('persistentvolumeclaims', `${metadata.name}-${volume.name}`)
  }
  return references
}

type Add = (resource: ReferencedResource, name: string | null | undefined) => void

function addContainer({ env = [], envFrom = [] }: Container, add: Add): void {
  for (const { secretRef, configMapRef } of envFrom) {
    add('secrets', secretRef?.name)
    add('configmaps', configMapRef?.name)
  }
  for (const { valueFrom } of env) {
    add('secrets', valueFrom?.secretKeyRef?.name)
    add('configmaps', valueFrom?.configMapKeyRef?.name)
  }
}

function addVolume(volume: PodVolume, add: Add): void {
  add('persistentvolumeclaims', volume.persistentVolumeClaim?.claimName)
  add('secrets', volume.secret?.secretName)
  add('configmaps', volume.configMap?.name)
  add('secrets', volume.csi?.nodePublishSecretRef?.name)
  add('secrets', volume.azureFile?.secretName)
  for (const source of [
    volume.cephfs,
    volume.cinder,
    volume.flexVolume,
    volume.iscsi,
    volume.rbd,
    volume.scaleIO,
    volume.storageos,
  ]) {
    add('secrets', source?.secretRef?.name)
  }
  for (const { secret, configMap } of volume.projected?.sources ?? []) {
    add('secrets', secret?.name)
    add('configmaps', configMap?.name)
  }
}

/** Returns the secrets that a node needs for the volume. Those of the controller's calls are not included. */
export function secretsOfVolume({ spec }: Readonly<PersistentVolume>): ObjectReference[] {
  const claimNamespace = spec?.claimRef?.namespace ?? ''
  const { csi, azureFile } = spec ?? {}
  const refs = [
    csi?.nodePublishSecretRef,
    csi?.nodeStageSecretRef,
    csi?.nodeExpandSecretRef,
    azureFile && { name: azureFile.secretName, namespace: azureFile.secretNamespace ?? undefined },
    spec?.cephfs?.secretRef,
    spec?.cinder?.secretRef,
    spec?.flexVolume?.secretRef,
    spec?.iscsi?.secretRef,
    spec?.rbd?.secretRef,
    spec?.scaleIO?.secretRef,
    spec?.storageos?.secretRef,
  ]
  return refs.flatMap((ref) =>
    ref?.name ? [{ resource: 'secrets' as const, namespace: ref.namespace || claimNamespace, name: ref.name }] : [],
  )
}
