// Steps for the tables of `kubectl get`: columns and computed cells.
import { expect } from 'vitest'
import { parseTable } from './parse-table.ts'
import type { Step } from './step.ts'

/** Column headers by resource. Headers after the bar appear with `-o wide` only. */
const HEADERS: Record<string, string> = {
  namespaces: 'NAME, STATUS, AGE',
  nodes: 'NAME, STATUS, ROLES, AGE, VERSION | INTERNAL-IP, EXTERNAL-IP, OS-IMAGE, KERNEL-VERSION, CONTAINER-RUNTIME',
  pods: 'NAME, READY, STATUS, RESTARTS, AGE | IP, NODE, NOMINATED NODE, READINESS GATES',
  pv: 'NAME, CAPACITY, ACCESS MODES, RECLAIM POLICY, STATUS, CLAIM, STORAGECLASS, VOLUMEATTRIBUTESCLASS, REASON, AGE | VOLUMEMODE',
  pvc: 'NAME, STATUS, VOLUME, CAPACITY, ACCESS MODES, STORAGECLASS, VOLUMEATTRIBUTESCLASS, AGE | VOLUMEMODE',
  quota: 'NAME, REQUEST, LIMIT, AGE',
  limits: 'NAME, CREATED AT',
  secrets: 'NAME, TYPE, DATA, AGE',
  cm: 'NAME, DATA, AGE',
  sa: 'NAME, AGE',
  sc: 'NAME, PROVISIONER, RECLAIMPOLICY, VOLUMEBINDINGMODE, ALLOWVOLUMEEXPANSION, AGE',
  vac: 'NAME, DRIVERNAME, AGE',
  csidrivers: 'NAME, ATTACHREQUIRED, PODINFOONMOUNT, STORAGECAPACITY, TOKENREQUESTS, REQUIRESREPUBLISH, MODES, AGE',
  csinodes: 'NAME, DRIVERS, AGE',
  volumeattachments: 'NAME, ATTACHER, PV, NODE, ATTACHED, AGE',
  csistoragecapacities: 'NAME, STORAGECLASSNAME, CAPACITY',
  leases: 'NAME, HOLDER, AGE',
}
/** Column headers of events. With `-o wide`, some additional columns are between the others. */
const EVENT_HEADERS = {
  narrow: 'LAST SEEN, TYPE, REASON, OBJECT, MESSAGE',
  wide: 'LAST SEEN, TYPE, REASON, OBJECT, SUBOBJECT, SOURCE, MESSAGE, FIRST SEEN, COUNT, NAME',
}

export const tableSteps: readonly Step[] = [
  ...Object.entries(HEADERS).map(
    ([resource, columns]) =>
      ({
        name: `get ${resource} prints ${columns}`,
        async run({ kubectl }) {
          const [narrow = [], wide = []] = columns.split(' | ').map((part) => part.split(', '))
          expect(parseTable(await kubectl.out(`get ${resource}`)).headers).toEqual(narrow)
          if (wide.length === 0) return
          expect(parseTable(await kubectl.out(`get ${resource} -o wide`)).headers).toEqual([...narrow, ...wide])
        },
      }) satisfies Step,
  ),
  ...['events', 'events.events.k8s.io'].map(
    (resource) =>
      ({
        name: `get ${resource} prints ${EVENT_HEADERS.wide}`,
        async run({ kubectl }) {
          expect(parseTable(await kubectl.out(`get ${resource}`)).headers).toEqual(EVENT_HEADERS.narrow.split(', '))
          const { headers, rows } = parseTable(
            await kubectl.out(`get ${resource} -o wide --field-selector reason=NoRoom`),
          )
          expect(headers).toEqual(EVENT_HEADERS.wide.split(', '))
          expect(rows).toMatchObject([
            {
              TYPE: 'Warning',
              OBJECT: 'persistentvolumeclaim/orders',
              SOURCE: 'tester',
              MESSAGE: 'nothing is left',
              COUNT: '3',
              NAME: 'orders.1',
            },
          ])
        },
      }) satisfies Step,
  ),
  {
    name: 'get pvc leaves volume, capacity and access modes of a pending claim empty',
    async run({ kubectl }) {
      const { rows } = parseTable(await kubectl.out('get pvc orders archive -o wide'))
      const pendingCells = { STATUS: 'Pending', VOLUME: '', CAPACITY: '', 'ACCESS MODES': '', STORAGECLASS: 'fast' }
      expect(rows).toMatchObject([
        { NAME: 'orders', ...pendingCells, VOLUMEATTRIBUTESCLASS: 'silver', VOLUMEMODE: 'Filesystem' },
        { NAME: 'archive', ...pendingCells, VOLUMEATTRIBUTESCLASS: '<unset>', VOLUMEMODE: 'Filesystem' },
      ])
      expect(rows[0]!.AGE).toMatch(/^\d+[sm]/)
    },
  },
  {
    name: 'get pv prints the capacity and abbreviated access modes',
    async run({ kubectl }) {
      const [readRow] = parseTable(await kubectl.out('get pv disk-a')).rows
      expect(readRow).toMatchObject({
        CAPACITY: '5Gi',
        'ACCESS MODES': 'RWO',
        'RECLAIM POLICY': 'Retain',
        CLAIM: '',
        STORAGECLASS: 'by-hand',
        VOLUMEATTRIBUTESCLASS: '<unset>',
      })
    },
  },
  {
    name: 'get sc marks the default class',
    async run({ kubectl }) {
      expect(parseTable(await kubectl.out('get sc')).rows).toMatchObject([
        {
          NAME: 'fast (default)',
          PROVISIONER: 'nobody.example.com',
          RECLAIMPOLICY: 'Delete',
          VOLUMEBINDINGMODE: 'WaitForFirstConsumer',
          ALLOWVOLUMEEXPANSION: 'true',
        },
      ])
    },
  },
  {
    name: 'get -o wide prints fields of nodes, pods, drivers, attachments, capacities, leases and secrets',
    async run({ kubectl }) {
      const row = async (object: string) => parseTable(await kubectl.out(`get ${object} -o wide`)).rows[0]
      expect(await row('node node-a')).toMatchObject({
        STATUS: 'Ready',
        ROLES: 'storage',
        VERSION: 'v1.34.0',
        'INTERNAL-IP': '10.0.0.1',
        'EXTERNAL-IP': '192.0.2.1',
        'CONTAINER-RUNTIME': 'containerd://2.0.0',
      })
      expect(await row('pod web')).toMatchObject({ READY: '0/1', STATUS: 'Pending', RESTARTS: '0', NODE: '<none>' })
      expect(await row('csidriver nobody.example.com')).toMatchObject({
        ATTACHREQUIRED: 'true',
        PODINFOONMOUNT: 'false',
        STORAGECAPACITY: 'true',
        TOKENREQUESTS: '<unset>',
        MODES: 'Persistent',
      })
      expect(await row('csinode node-a')).toMatchObject({ DRIVERS: '1' })
      expect(await row('volumeattachment attach-a')).toMatchObject({ PV: 'disk-a', NODE: 'node-a', ATTACHED: 'false' })
      expect(await row('csistoragecapacity zone-1-fast')).toMatchObject({ STORAGECLASSNAME: 'fast', CAPACITY: '100Gi' })
      expect(await row('lease leader')).toMatchObject({ HOLDER: 'node-a' })
      expect(await row('secret login')).toMatchObject({ TYPE: 'Opaque', DATA: '2' })
    },
  },
]
