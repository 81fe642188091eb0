// get as a table: every kind's columns, and computed cells.
import { expect } from 'vitest'
import type { Step } from './step.ts'
import { readTable } from './table.ts'

/** Column headers by resource; those after the bar appear with -o wide only. */
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
/** The wide columns of events are between the others. */
const EVENT_HEADERS = {
  narrow: 'LAST SEEN, TYPE, REASON, OBJECT, MESSAGE',
  wide: 'LAST SEEN, TYPE, REASON, OBJECT, SUBOBJECT, SOURCE, MESSAGE, FIRST SEEN, COUNT, NAME',
}

export const tables: readonly Step[] = [
  ...Object.entries(HEADERS).map(
    ([what, text]) =>
      ({
        name: `get ${what} prints ${text}`,
        async run({ kubectl }) {
          const [narrow = [], wide = []] = text.split(' | ').map((part) => part.split(', '))
          expect(readTable(await kubectl.out(`get ${what}`)).headers).toEqual(narrow)
          if (wide.length === 0) return
          expect(readTable(await kubectl.out(`get ${what} -o wide`)).headers).toEqual([...narrow, ...wide])
        },
      }) satisfies Step,
  ),
  ...['events', 'events.events.k8s.io'].map(
    (what) =>
      ({
        name: `get ${what} prints ${EVENT_HEADERS.wide}`,
        async run({ kubectl }) {
          expect(readTable(await kubectl.out(`get ${what}`)).headers).toEqual(EVENT_HEADERS.narrow.split(', '))
          const { headers, rows } = readTable(await kubectl.out(`get ${what} -o wide --field-selector reason=NoRoom`))
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
    name: 'get pvc shows what a claim waits for, and leaves size and modes empty until it is bound',
    async run({ kubectl }) {
      const { rows } = readTable(await kubectl.out('get pvc orders archive -o wide'))
      const waiting = { STATUS: 'Pending', VOLUME: '', CAPACITY: '', 'ACCESS MODES': '', STORAGECLASS: 'fast' }
      expect(rows).toMatchObject([
        { NAME: 'orders', ...waiting, VOLUMEATTRIBUTESCLASS: 'silver', VOLUMEMODE: 'Filesystem' },
        { NAME: 'archive', ...waiting, VOLUMEATTRIBUTESCLASS: '<unset>', VOLUMEMODE: 'Filesystem' },
      ])
      expect(rows[0]!.AGE).toMatch(/^\d+[sm]/)
    },
  },
  {
    name: 'get pv shows size and modes in short',
    async run({ kubectl }) {
      const [row] = readTable(await kubectl.out('get pv disk-a')).rows
      expect(row).toMatchObject({
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
    name: 'get sc marks the default class among its siblings, and not when asked for it alone',
    async run({ kubectl }) {
      expect(readTable(await kubectl.out('get sc')).rows).toMatchObject([
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
    name: 'get shows nodes, drivers, attachments, capacity and leases as they are',
    async run({ kubectl }) {
      const row = async (what: string) => readTable(await kubectl.out(`get ${what} -o wide`)).rows[0]
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
