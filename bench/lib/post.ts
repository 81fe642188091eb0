// Creates one object, or deletes all objects of a collection, while a measurement is prepared.
import { type Endpoint, openConnection } from './http-connection.ts'
import { numberedRequest, type RequestText } from './load-role.ts'

export const post = (endpoint: Endpoint, path: string, body: object): Promise<void> =>
  send(endpoint, { method: 'POST', path, body: JSON.stringify(body) })

export const deleteAll = (endpoint: Endpoint, path: string): Promise<void> => send(endpoint, { method: 'DELETE', path })

async function send(endpoint: Endpoint, text: RequestText): Promise<void> {
  const connection = await openConnection(endpoint, () => {})
  const { status } = await new Promise<{ status: number }>((resolve) =>
    connection.send(numberedRequest(text)(0), resolve),
  )
  connection.close()
  if (status >= 300) throw new Error(`${text.method} ${text.path}: ${status}`)
}
