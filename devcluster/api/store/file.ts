/**
 * The store in one SQLite file. node:sqlite is loaded when a file is asked for, not before.
 *
 * Guarantee: a change that was put is there after the process was killed. A power cut may lose the last ones, never tear one.
 */
import { createRequire } from 'node:module'
import type { Obj } from '../types.ts'
import { textOf } from './text.ts'

export interface StoreFile {
  readonly revision: number
  load(): Iterable<{ resource: string; object: Obj }>
  put(resource: string, key: string, object: Obj, revision: number): void
  remove(resource: string, key: string, revision: number): void
  close(): void
}

export function openFile(path: string): StoreFile {
  const { DatabaseSync } = createRequire(import.meta.url)('node:sqlite') as typeof import('node:sqlite')
  const db = new DatabaseSync(path)
  db.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = OFF;
    CREATE TABLE IF NOT EXISTS objects (resource TEXT, key TEXT, json TEXT NOT NULL, PRIMARY KEY (resource, key)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS cluster (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL);
    INSERT OR IGNORE INTO cluster VALUES (1, 1);
  `)
  const counted = db.prepare('UPDATE cluster SET revision = ?')
  const put = db.prepare('INSERT OR REPLACE INTO objects VALUES (?, ?, ?)')
  const remove = db.prepare('DELETE FROM objects WHERE resource = ? AND key = ?')
  const { revision } = db.prepare('SELECT revision FROM cluster').get() as { revision: number }

  /** Both or neither: an object is never newer than the revision. */
  function together(run: () => void): void {
    db.exec('BEGIN')
    try {
      run()
      db.exec('COMMIT')
    } catch (error) {
      db.exec('ROLLBACK')
      throw error
    }
  }
  return {
    revision,
    *load() {
      for (const row of db.prepare('SELECT resource, json FROM objects').iterate()) {
        const { resource, json } = row as { resource: string; json: string }
        yield { resource, object: JSON.parse(json) as Obj }
      }
    },
    put: (resource, key, object, next) =>
      together(() => {
        put.run(resource, key, textOf(object))
        counted.run(next)
      }),
    remove: (resource, key, next) =>
      together(() => {
        remove.run(resource, key)
        counted.run(next)
      }),
    close: () => db.close(),
  }
}
