// Steps for `kubectl get -w`: a row for every object that is added, modified or deleted.
import type { Step } from './step.ts'

const CONFIG_MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: watched, labels: {watched: "yes"}}\n'

export const watchSteps: readonly Step[] = [
  {
    name: 'get -w prints a row for every change',
    async run({ kubectl }) {
      const watch = kubectl.follow('get cm -w --output-watch-events')
      try {
        await watch.line(/^EVENT +NAME +DATA +AGE/)
        await watch.line(/^ADDED +settings +2 /)
        await kubectl.out('create -f -', { stdin: CONFIG_MAP })
        await watch.line(/^ADDED +watched +0 /)
        await kubectl.out(['patch', 'cm', 'watched', '-p', '{"data":{"a":"b"}}'])
        await watch.line(/^MODIFIED +watched +1 /)
        await kubectl.out('delete cm watched')
        await watch.line(/^DELETED +watched +1 /)
      } finally {
        await watch.stop()
      }
    },
  },
  {
    name: 'get -w with a selector prints objects that start or stop matching',
    async run({ kubectl }) {
      const watch = kubectl.follow('get cm -l watched=yes -w --output-watch-events')
      try {
        await kubectl.out('create -f -', { stdin: CONFIG_MAP })
        await watch.line(/^ADDED +watched /)
        await kubectl.out('label cm watched watched=no --overwrite')
        await watch.line(/^DELETED +watched /)
        await kubectl.out('label cm watched watched=yes --overwrite')
        await watch.line(/^ADDED +watched /)
        await kubectl.out('delete cm watched')
        await watch.line(/^DELETED +watched /)
      } finally {
        await watch.stop()
      }
    },
  },
  {
    name: 'get NAME -w -o jsonpath prints every change of one object',
    async run({ kubectl }) {
      const watch = kubectl.follow('get cm settings -w -o jsonpath={.data.colour}{"\\n"}')
      try {
        await watch.line(/^green$/)
        await kubectl.out(['patch', 'cm', 'settings', '-p', '{"data":{"colour":"red"}}'])
        await watch.line(/^red$/)
        await kubectl.out(['patch', 'cm', 'settings', '-p', '{"data":{"colour":"green"}}'])
        await watch.line(/^green$/)
      } finally {
        await watch.stop()
      }
    },
  },
]
