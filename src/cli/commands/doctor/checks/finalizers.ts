// Checks for deleted objects that still exist because of a finalizer: those whose driver is not installed, so that nothing
// removes the finalizer, and those that have waited for some time.
import type { Kind, KubeObject, Stored } from '../../../../api/kind.ts'
import { volumeAttributesClassKind } from '../../../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../../../api/kinds/claim/claim.ts'
import { csiDriverKind } from '../../../../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../../../../api/kinds/csi-node/csi-node.ts'
import { persistentVolumeKind } from '../../../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../../../api/kinds/volume-attachment/volume-attachment.ts'
import { ApiError } from '../../../../api/status-error.ts'
import {
  CLAIM_PROTECTION_FINALIZER,
  EXTERNAL_PROVISIONER_FINALIZER,
  IN_PROCESS_PROVISIONER_FINALIZER,
  VOLUME_PROTECTION_FINALIZER,
} from '../../../../volumes/names.ts'
import { formatShortAge } from '../../status/format-status.ts'
import type { Check, Cluster, DoctorContext, Finding } from '../check.ts'
import { serverTimeMs } from '../probe-server.ts'
import { describeUnreadable } from '../report.ts'

/** Objects that wait longer are reported. Finalizers are normally removed within seconds. */
const WAITING_MS_MAX = 300_000

interface DeletedObject {
  readonly kind: Kind
  readonly object: Readonly<Stored>
  /** The CSI driver without which the finalizers are not removed. */
  readonly driver?: string
}

export const finalizers: Check = {
  id: 'finalizers',
  title: 'Finalizers',
  async run(context) {
    const { cluster } = context
    const installedDrivers = await readInstalledDrivers(cluster)
    const lists = [
      listDeletedObjects(cluster, persistentVolumeClaimKind, () => undefined),
      listDeletedObjects(cluster, persistentVolumeKind, ({ spec }) => spec?.csi?.driver),
      listDeletedObjects(cluster, volumeAttachmentKind, ({ spec }) => spec.attacher),
      listDeletedObjects(cluster, volumeAttributesClassKind, () => undefined),
    ]
    const findings = (await Promise.all(lists.map((list) => describeList(list, context, installedDrivers)))).flat()
    if (findings.length > 0) return findings
    const restriction =
      context.driver === undefined ? '' : ` Objects of drivers other than ${context.driver} are not checked.`
    return [{ status: 'ok', message: `No deleted object waits for a finalizer.${restriction}` }]
  },
}

async function readInstalledDrivers(cluster: Cluster): Promise<ReadonlySet<string>> {
  const [drivers, csiNodes] = await Promise.all([cluster.list(csiDriverKind), cluster.list(csiNodeKind)])
  return new Set([
    ...drivers.map(({ metadata }) => metadata.name),
    ...csiNodes.flatMap(({ spec }) => spec.drivers.map(({ name }) => name)),
  ])
}

async function listDeletedObjects<T extends KubeObject>(
  cluster: Cluster,
  kind: Kind<T>,
  driverOf: (object: Readonly<Stored<T>>) => string | undefined,
): Promise<DeletedObject[]> {
  const objects = await cluster.list(kind)
  return objects
    .filter(({ metadata }) => metadata.deletionTimestamp && metadata.finalizers?.length)
    .map((object) => ({ kind: kind as Kind, object, driver: driverOf(object) }))
}

/** Returns an unknown finding for a kind that may not be read, so that the other kinds are still checked. */
async function describeList(
  list: Promise<readonly DeletedObject[]>,
  context: DoctorContext,
  installedDrivers: ReadonlySet<string>,
): Promise<Finding[]> {
  try {
    return (await list).flatMap((deletedObject) => describeObject(deletedObject, context, installedDrivers))
  } catch (error) {
    if (error instanceof ApiError) return [describeUnreadable(error)]
    throw error
  }
}

function describeObject(
  { kind, object, driver }: DeletedObject,
  { server, clock, driver: selectedDriver }: DoctorContext,
  installedDrivers: ReadonlySet<string>,
): Finding[] {
  if (selectedDriver !== undefined && driver !== undefined && driver !== selectedDriver) return []
  const { namespace, name, deletionTimestamp = '', finalizers: names = [] } = object.metadata
  const waitingMs = serverTimeMs(server, clock) - Date.parse(deletionTimestamp)
  const id = `${kind.kind} ${namespace ? `${namespace}/` : ''}${name}`
  const target = `${kind.singular} ${name}${namespace ? ` --namespace ${namespace}` : ''}`
  const driverFinalizer = names.find(isDriverFinalizer)
  if (driver !== undefined && driverFinalizer !== undefined && !installedDrivers.has(driver)) {
    return [
      {
        status: 'error',
        object: id,
        message: `It is being deleted, but nothing removes the finalizer ${driverFinalizer}: the driver ${driver} is not installed.`,
        remedy: `Install the driver again, or, if its storage no longer exists: kubectl patch ${target} --type merge -p '{"metadata":{"finalizers":null}}'`,
      },
    ]
  }
  if (waitingMs < WAITING_MS_MAX) return []
  return [
    {
      status: 'warning',
      object: id,
      message: `It was deleted ${formatShortAge(Math.round(waitingMs / 1_000))} ago and waits for ${names.map(explainFinalizer).join(', and for ')}.`,
      remedy: `kubectl describe ${target}`,
    },
  ]
}

const ATTACHER_PREFIX = 'external-attacher/'
const SOURCE_PREFIX = 'provisioner.storage.kubernetes.io/'

/** Returns whether a sidecar of the driver removes the finalizer. */
const isDriverFinalizer = (finalizer: string): boolean =>
  finalizer.startsWith(ATTACHER_PREFIX) || finalizer === EXTERNAL_PROVISIONER_FINALIZER

/** The condition under which each finalizer is removed. */
const EXPLANATIONS: Readonly<Record<string, string>> = {
  [CLAIM_PROTECTION_FINALIZER]: 'removed when no pod uses the claim',
  [VOLUME_PROTECTION_FINALIZER]: 'removed when the volume is not bound to a claim',
  'kubernetes.io/vac-protection': 'removed when no claim and no volume uses the class',
  [EXTERNAL_PROVISIONER_FINALIZER]: 'removed by the provisioner when the storage is deleted',
  [IN_PROCESS_PROVISIONER_FINALIZER]: 'removed by the in-process provisioner when the storage is deleted',
}

function explainFinalizer(finalizer: string): string {
  const explanation =
    EXPLANATIONS[finalizer] ??
    (finalizer.startsWith(ATTACHER_PREFIX)
      ? 'removed by the attacher when the volume is detached'
      : finalizer.startsWith(SOURCE_PREFIX)
        ? 'removed by the provisioner when no claim is created from this one'
        : 'which neither Kubernetes nor Stowage removes')
  return `the finalizer ${finalizer} (${explanation})`
}
