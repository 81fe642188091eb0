// Admission plugin ServiceAccount: a new pod runs as the account `default` unless it names another. The plugin adds the
// image pull secrets of the account if the pod names none and, unless automounting is off, the account's token, the CA and
// the namespace as files.
import type { Kind } from '../../api/kind.ts'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Volume } from '../../api/kinds/pod/pod-volumes-schema.ts'
import { serviceAccountKind } from '../../api/kinds/service-account/service-account.ts'
import type { ServiceAccount } from '../../api/kinds/service-account/service-account-schema.ts'
import { forbidden } from '../../api/status-error.ts'
import type { Random } from '../../base/clock.ts'
import { generateName, randomUuid } from '../../base/identifiers.ts'
import { timestamp } from '../../base/timestamps.ts'
import type { Write } from '../../store/index.ts'
import type { AdmissionPlugin, AdmissionRequest } from '../admission/index.ts'
import { objectKey } from '../keys.ts'
import { encodeStored } from '../objects/stored-object.ts'

const DEFAULT_ACCOUNT = 'default'
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror'
const ROOT_CA = 'kube-root-ca.crt'
const VOLUME_PREFIX = 'kube-api-access-'
const MOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount'
/** The lifetime that Kubernetes requests for these tokens. */
const TOKEN_SECONDS = 3_607

export interface ServiceAccountAdmissionOptions {
  readonly random: Random
  /** This server's CA as PEM. */
  readonly rootCa: string
}

export const serviceAccountAdmission = ({ random, rootCa }: ServiceAccountAdmissionOptions): AdmissionPlugin => ({
  name: 'ServiceAccount',
  mutate(request) {
    if (!isPodCreate(request)) return
    const pod: Pod = request.object
    const { spec } = pod
    if (!spec || isMirror(pod)) return
    spec.serviceAccountName ||= DEFAULT_ACCOUNT
    spec.serviceAccount = spec.serviceAccountName
    const account = request.find<ServiceAccount>(serviceAccountKind, request.namespace, spec.serviceAccountName)
    if (spec.automountServiceAccountToken ?? account?.automountServiceAccountToken ?? true) mountToken(pod, random)
    const pullSecrets = account?.imagePullSecrets ?? []
    if (!spec.imagePullSecrets?.length && pullSecrets.length > 0) {
      spec.imagePullSecrets = pullSecrets.map(({ name }) => ({ name }))
    }
  },

  /**
   * Rejects a pod whose account does not exist, but creates the account `default` and the ConfigMap of the CA with the first pod
   * if the controllers have not done so yet.
   */
  validate(request) {
    if (!isPodCreate(request) || isMirror(request.object)) return undefined
    const { resource, namespace, name, nowMs, find } = request
    const accountName: string = request.object.spec.serviceAccountName
    const hasAccount = find(serviceAccountKind, namespace, accountName) !== undefined
    if (!hasAccount && accountName !== DEFAULT_ACCOUNT) {
      const account = `${namespace}/${accountName}`
      const message = `error looking up service account ${account}: serviceaccount "${accountName}" not found`
      throw forbidden(resource, name, message)
    }
    const create = (kind: Kind, objectName: string, fields: object): Write => {
      const creationTimestamp = timestamp(nowMs)
      const metadata = { name: objectName, namespace, uid: randomUuid(random), creationTimestamp }
      return { put: objectKey(kind, namespace, objectName), value: encodeStored({ metadata, ...fields }) }
    }
    const needsCa = tokenVolumeOf(request.object) && !find(configMapKind, namespace, ROOT_CA)
    return [
      ...(hasAccount ? [] : [create(serviceAccountKind, accountName, {})]),
      ...(needsCa ? [create(configMapKind, ROOT_CA, { data: { 'ca.crt': rootCa } })] : []),
    ]
  },
})

const isPodCreate = ({ operation, resource, subresource }: AdmissionRequest): boolean =>
  operation === 'CREATE' && subresource === '' && resource.group === '' && resource.plural === 'pods'

const isMirror = ({ metadata }: Pod): boolean => metadata.annotations?.[MIRROR_ANNOTATION] !== undefined

const tokenVolumeOf = ({ spec }: Pick<Pod, 'spec'>): Volume | undefined =>
  spec?.volumes?.find(({ name }) => name.startsWith(VOLUME_PREFIX))

/** A container with its own mount at the path keeps it. */
function mountToken({ spec }: Pod, random: Random): void {
  const containers: Container[] = [...(spec!.initContainers ?? []), ...spec!.containers].filter(
    ({ volumeMounts = [] }) => !volumeMounts.some(({ mountPath }) => mountPath === MOUNT_PATH),
  )
  if (containers.length === 0) return
  const existingVolume = tokenVolumeOf({ spec })
  const name = existingVolume?.name ?? generateName(VOLUME_PREFIX, random)
  if (!existingVolume) spec!.volumes = [...(spec!.volumes ?? []), tokenVolume(name)]
  for (const container of containers) {
    container.volumeMounts = [...(container.volumeMounts ?? []), { name, mountPath: MOUNT_PATH, readOnly: true }]
  }
}

const tokenVolume = (name: string): Volume => ({
  name,
  projected: {
    defaultMode: 0o644,
    sources: [
      { serviceAccountToken: { path: 'token', expirationSeconds: TOKEN_SECONDS } },
      { configMap: { name: ROOT_CA, items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      {
        downwardAPI: {
          items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
        },
      },
    ],
  },
})
