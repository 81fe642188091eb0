// Creates, changes, reads and deletes the API objects of a bench: the CSIDriver (from the driver's capabilities), classes,
// Secrets, claims and pods.
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { secretKind } from '../../api/kinds/secret/secret.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { type Client, find } from '../../client/index.ts'
import type { DriverProfile } from '../profile.ts'
import type { SecretKey, VerifySettings } from '../settings.ts'

export interface BenchObjects {
  createClaim(name: string, sizeBytes: number): Promise<void>
  /** Creates a pod that mounts the claim. */
  createPod(name: string, claim: string): Promise<void>
  deletePod(name: string): Promise<void>
  deleteClaim(name: string): Promise<void>
  requestSize(claim: string, sizeBytes: number): Promise<void>
  requestAttributes(claim: string): Promise<void>
  isBound(claim: string): Promise<boolean>
  isRunning(pod: string): Promise<boolean>
  isPodDeleted(pod: string): Promise<boolean>
  /** Whether the claim, its volume and all attachments are deleted. */
  isDeleted(claim: string): Promise<boolean>
  hasNoAttachments(): Promise<boolean>
  /** Whether the claim reports at least this size, and no condition. */
  hasSize(claim: string, sizeBytes: number): Promise<boolean>
  /** Whether the volume has at least this size; its file system may be smaller. */
  hasVolumeSize(claim: string, sizeBytes: number): Promise<boolean>
  hasAttributes(claim: string): Promise<boolean>
  findVolume(claim: string): Promise<Readonly<PersistentVolume> | undefined>
}

export interface ObjectsDeps {
  readonly client: Client
  readonly profile: DriverProfile
  readonly settings: VerifySettings
}

const NAMESPACE = 'default'
const CLASS_NAME = 'verify'
const ATTRIBUTES_CLASS_NAME = 'verify-attributes'

/** The purposes for which a class refers to each Secret, by the key in the secrets file. */
const CLASS_SECRETS: Readonly<Partial<Record<SecretKey, readonly string[]>>> = {
  CreateVolumeSecret: ['provisioner-secret'],
  ControllerPublishVolumeSecret: ['controller-publish-secret'],
  NodeStageVolumeSecret: ['node-stage-secret'],
  NodePublishVolumeSecret: ['node-publish-secret'],
  ControllerExpandVolumeSecret: ['controller-expand-secret', 'node-expand-secret'],
  ControllerModifyVolumeSecret: ['controller-modify-secret'],
}

export async function createBenchObjects({ client, profile, settings }: ObjectsDeps): Promise<BenchObjects> {
  await client.create(csiDriverKind, {
    metadata: { name: profile.name },
    spec: { attachRequired: profile.controller.has('PUBLISH_UNPUBLISH_VOLUME') },
  })
  const secretParameters = await createSecrets(client, settings)
  const { parameters, mountOptions, volumeBindingMode = 'WaitForFirstConsumer' } = settings.storageClass
  await client.create(storageClassKind, {
    metadata: { name: CLASS_NAME },
    provisioner: profile.name,
    parameters: { ...parameters, ...secretParameters },
    ...(mountOptions ? { mountOptions } : {}),
    volumeBindingMode,
    allowVolumeExpansion: true,
  })
  if (settings.attributes) {
    await client.create(volumeAttributesClassKind, {
      metadata: { name: ATTRIBUTES_CLASS_NAME },
      driverName: profile.name,
      parameters: { ...settings.attributes },
    })
  }

  const ref = (name: string) => ({ namespace: NAMESPACE, name })
  const findClaim = (name: string) => find(client, persistentVolumeClaimKind, ref(name))
  const patchClaim = (name: string, spec: object) =>
    client.patch(persistentVolumeClaimKind, ref(name), { type: 'merge', body: { spec } })
  const findVolume = async (claim: string) => {
    const { items } = await client.list(persistentVolumeKind)
    return items.find(({ spec }) => spec?.claimRef?.name === claim)
  }
  const hasNoAttachments = async () => (await client.list(volumeAttachmentKind)).items.length === 0

  return {
    findVolume,
    hasNoAttachments,
    async createClaim(name, sizeBytes) {
      await client.create(persistentVolumeClaimKind, {
        metadata: ref(name),
        spec: {
          storageClassName: CLASS_NAME,
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: String(sizeBytes) } },
        },
      })
    },
    async createPod(name, claim) {
      await client.create(podKind, {
        metadata: ref(name),
        spec: {
          containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
          volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claim } }],
          terminationGracePeriodSeconds: 1, // no process runs in the pod; 0 would delete it before its volumes are unmounted
        },
      })
    },
    deletePod: async (name) => void (await client.delete(podKind, ref(name))),
    deleteClaim: async (name) => void (await client.delete(persistentVolumeClaimKind, ref(name))),
    requestSize: async (claim, sizeBytes) =>
      void (await patchClaim(claim, { resources: { requests: { storage: String(sizeBytes) } } })),
    requestAttributes: async (claim) =>
      void (await patchClaim(claim, { volumeAttributesClassName: ATTRIBUTES_CLASS_NAME })),
    isBound: async (claim) => (await findClaim(claim))?.status?.phase === 'Bound',
    isRunning: async (pod) => (await find(client, podKind, ref(pod)))?.status?.phase === 'Running',
    isPodDeleted: async (pod) => (await find(client, podKind, ref(pod))) === undefined,
    isDeleted: async (claim) =>
      (await findClaim(claim)) === undefined && (await findVolume(claim)) === undefined && (await hasNoAttachments()),
    async hasSize(claim, sizeBytes) {
      const status = (await findClaim(claim))?.status
      return hasBytes(status?.capacity?.storage, sizeBytes) && (status?.conditions ?? []).length === 0
    },
    hasVolumeSize: async (claim, sizeBytes) => hasBytes((await findVolume(claim))?.spec?.capacity?.storage, sizeBytes),
    hasAttributes: async (claim) =>
      (await findClaim(claim))?.status?.currentVolumeAttributesClassName === ATTRIBUTES_CLASS_NAME,
  }
}

const hasBytes = (quantity: string | undefined, bytes: number): boolean =>
  quantity !== undefined && quantityToBytes(quantity) >= BigInt(bytes)

/** Creates the Secrets, and returns the class parameters that refer to them. */
async function createSecrets(client: Client, { secrets }: VerifySettings): Promise<Record<string, string>> {
  const parameters: Record<string, string> = {}
  for (const [key, purposes] of Object.entries(CLASS_SECRETS)) {
    const values = secrets[key as SecretKey]
    if (!values) continue
    const name = key.toLowerCase()
    await client.create(secretKind, {
      metadata: { namespace: NAMESPACE, name },
      data: Object.fromEntries(
        Object.entries(values).map(([field, value]) => [field, Buffer.from(value).toString('base64')]),
      ),
    })
    for (const purpose of purposes) {
      parameters[`csi.storage.k8s.io/${purpose}-name`] = name
      parameters[`csi.storage.k8s.io/${purpose}-namespace`] = NAMESPACE
    }
  }
  return parameters
}
