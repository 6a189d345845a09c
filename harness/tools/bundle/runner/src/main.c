// Runs one turn of a bundle, and prints what came of it as one JSON object.
//
//     runner turn FILE LOG WORK   runs the case that FILE describes, and times it if it is right
//     runner who FILE LOG         asks OpenCL's device who it is
//     runner peaks FILE LOG       measures what it does at best
//     runner gpus                 prints what NVIDIA's driver says of its GPUs
//     runner quote FILE           prints a file as a JSON string
//
// The work is done by processes of their own, each of which is killed when it is silent for longer than the file allows.
// A turn of a tuned case begins with one that tunes, and the first that times with two that make the reference kernel
// ready; what they make is kept in WORK. What drivers print goes to LOG, whose newest part is in the object. Judging is
// left to the host: `harness.tools.bundle.replay_session`.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "gpus.h"
#include "quote.h"
#include "session.h"
#include "tell.h"

enum { NEWEST_OF_LOG = 262144, END_MS = 5000 };

/// Takes what the process tells until it ends; whether it fell silent for too long.
static int listen_to(int from, double timeout_s, Text* told) {
  struct pollfd waited = {.fd = from, .events = POLLIN};
  char piece[65536];
  for (;;) {
    if (poll(&waited, 1, (int)(1e3 * timeout_s)) <= 0) return 1;
    const ssize_t got = read(from, piece, sizeof(piece));
    if (got <= 0) return 0;
    text_append(told, piece, (size_t)got);
  }
}

/// How the process ended, as `waitpid` says it. One that has closed its pipe and stays is killed.
static int ending_of(pid_t process) {
  int status = 0;
  for (int waited_ms = 0; waitpid(process, &status, WNOHANG) == 0; waited_ms += 10) {
    if (waited_ms >= END_MS) kill(-process, SIGKILL);
    if (waited_ms >= 2 * END_MS) break;  // a driver may hold it in the kernel
    poll(NULL, 0, 10);
  }
  return status;
}

/// What a process told, as the members of an object.
static void add_members(Text* json, const Text* told, int hung, int status, const char* log) {
  size_t begun = 0;
  for (size_t i = 0; i < told->size; ++i) {  // a line that was cut off is left out
    if (told->data[i] != '\n') continue;
    text_append(json, told->data + begun, i - begun);
    text_add(json, ", ");
    begun = i + 1;
  }
  Text said = read_file(log, NEWEST_OF_LOG);
  text_add(json, "\"log\": ");
  quote(json, said.data ? said.data : "", said.size);
  text_free(&said);
  text_add(json, hung ? ", \"hung\": true" : ", \"hung\": false");
  text_add(json, ", \"signal\": ");
  text_add_number(json, !hung && WIFSIGNALED(status) ? (uint64_t)WTERMSIG(status) : 0);
  text_add(json, ", \"code\": ");
  text_add_number(json, !hung && WIFEXITED(status) ? (uint64_t)WEXITSTATUS(status) : 0);
}

/// Whether the last that was told is that all is done.
static int is_done(const Text* told) {
  static const char done[] = "\"done\": true\n";
  const size_t size = sizeof(done) - 1;
  return told->size >= size && memcmp(told->data + told->size - size, done, size) == 0;
}

/// Holds a session and adds what it told; whether it came to its end.
static int hold(Session session, const Case* packed, const char* work, const char* log, Text* json) {
  const int of_reference = session == COMPILE_REFERENCE || session == FIND_TURNS;
  const Protocol* rules = &packed->protocol;
  int ends[2];
  const int printed = open(log, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  if (printed < 0 || pipe(ends) != 0) tell_broken("the log cannot be written", log);
  const pid_t process = fork();
  if (process < 0) tell_broken("no process can be started", SESSION_NAMES[session]);
  if (process == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(printed, 1);
    dup2(printed, 2);
    close(ends[0]);
    tell_to(ends[1]);
    hold_session(session, packed, work);
  }
  setpgid(process, process);
  close(printed);
  close(ends[1]);
  Text told = {0};
  const int hung = listen_to(ends[0], of_reference ? rules->reference_timeout_s : rules->timeout_s, &told);
  close(ends[0]);
  if (hung) kill(-process, SIGKILL);
  add_members(json, &told, hung, ending_of(process), log);
  const int done = is_done(&told);
  text_free(&told);
  return done;
}

/// Holds a session that makes a file, unless it is there; whether it is there afterwards.
static int prepare(Session session, const char* file, const Case* packed, const char* work, const char* log, Text* json) {
  if (file == NULL) return 0;
  if (access(file, R_OK) == 0) return 1;
  quote(json, SESSION_NAMES[session], strlen(SESSION_NAMES[session]));
  text_add(json, ": {");
  const int done = hold(session, packed, work, log, json);
  text_add(json, "}");
  text_add(json, done || session != TUNE ? ", " : "");  // without its tuning a case is not run
  return done;
}

static void hold_turn(const Case* packed, const char* work, const char* log, Text* json) {
  const char* const tuned = packed->binaries ? packed->binaries : packed->tuning_cache;
  if (tuned != NULL && !prepare(TUNE, kept_at(work, tuned), packed, work, log, json)) return;
  if (prepare(COMPILE_REFERENCE, kept_at(work, packed->reference_binaries), packed, work, log, json)) {
    prepare(FIND_TURNS, kept_at(work, packed->reference_turns), packed, work, log, json);
  }
  hold(TURN, packed, work, log, json);
}

static int print(const Text* json) { return json->failed || write_all(1, json->data, json->size) != 0; }

int main(int count, char** words) {
  static Case packed;
  Text json = {0};
  const char* what = count > 1 ? words[1] : "";
  if (count == 3 && strcmp(what, "quote") == 0) {
    const Text content = read_file(words[2], 0);
    quote(&json, content.data ? content.data : "", content.size);
    return print(&json);
  }
  if (count == 2 && strcmp(what, "gpus") == 0) {
    describe_gpus(&json);
    return print(&json);
  }
  const int turn = count == 5 && strcmp(what, SESSION_NAMES[TURN]) == 0;
  const int asks = count == 4 && (strcmp(what, SESSION_NAMES[WHO]) == 0 || strcmp(what, SESSION_NAMES[PEAKS]) == 0);
  if (!turn && !asks) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever kills the script ends this, too
  read_case(words[2], &packed);
  text_add(&json, "{");
  if (turn) hold_turn(&packed, words[4], words[3], &json);
  if (asks) hold(strcmp(what, SESSION_NAMES[WHO]) == 0 ? WHO : PEAKS, &packed, ".", words[3], &json);
  text_add(&json, "}");
  return print(&json) ? 4 : 0;
}
