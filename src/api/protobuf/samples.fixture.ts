// Test support: request bodies captured from kubectl 1.33, and the equivalent JSON.

import { configMap } from '../kinds/config-map/config-map-schema.ts'
import { namespace } from '../kinds/namespace/namespace-schema.ts'
import { resourceQuota } from '../kinds/resource-quota/resource-quota-schema.ts'
import { secret } from '../kinds/secret/secret-schema.ts'
import { serviceAccount } from '../kinds/service-account/service-account-schema.ts'
import type { ObjectType } from '../schema.ts'

export interface ProtobufSample {
  readonly command: string
  readonly apiVersion: string
  readonly kind: string
  readonly type: ObjectType
  readonly bytes: Buffer
  /** The equivalent JSON. */
  readonly json: object
}

const sample = (command: string, type: ObjectType, hex: string, json: object): ProtobufSample => ({
  command: `kubectl create ${command}`,
  apiVersion: 'v1',
  kind: type.name.split('.').at(-1)!,
  type,
  bytes: Buffer.from(hex.replaceAll(/\s/g, ''), 'hex'),
  json,
})

export const PROTOBUF_SAMPLES: readonly ProtobufSample[] = [
  sample(
    'namespace shop',
    namespace,
    `6b3873000a0f0a02763112094e616d657370616365121c0a140a0473686f7012001a0022002a0032003800420012001a020a001a002200`,
    { metadata: { name: 'shop' } },
  ),
  sample(
    'configmap settings --from-literal=colour=green --from-literal=empty=',
    configMap,
    `6b3873000a0f0a0276311209436f6e6669674d6170123a0a1c0a0873657474696e677312001a0473686f7022002a00320038004200
     120f0a06636f6c6f75721205677265656e12090a05656d70747912001a002200`,
    { metadata: { name: 'settings', namespace: 'shop' }, data: { colour: 'green', empty: '' } },
  ),
  sample(
    'secret generic login --from-literal=password=hunter2',
    secret,
    `6b3873000a0c0a027631120653656372657412320a190a056c6f67696e12001a0473686f7022002a00320038004200
     12130a0870617373776f7264120768756e746572321a001a002200`,
    { metadata: { name: 'login', namespace: 'shop' }, data: { password: 'aHVudGVyMg==' } },
  ),
  sample(
    'quota ceiling --hard=requests.storage=10Gi,persistentvolumeclaims=5',
    resourceQuota,
    `6b3873000a130a027631120d5265736f7572636551756f7461125c0a1b0a076365696c696e6712001a0473686f7022002a00320038004200
     123b0a1d0a1670657273697374656e74766f6c756d65636c61696d7312030a01350a1a0a1072657175657374732e73746f72616765
     12060a04313047691a001a002200`,
    {
      metadata: { name: 'ceiling', namespace: 'shop' },
      spec: { hard: { persistentvolumeclaims: '5', 'requests.storage': '10Gi' } },
    },
  ),
  sample(
    'serviceaccount robot',
    serviceAccount,
    `6b3873000a140a027631120e536572766963654163636f756e74121b0a190a05726f626f7412001a0473686f7022002a00320038004200
     1a002200`,
    { metadata: { name: 'robot', namespace: 'shop' } },
  ),
]
